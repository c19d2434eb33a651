package config_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/ledger"
)

const hookDocument = `
[[webhook]]
name = "chat"
url = "https://hooks.example/canopy"
secret_env = "CANOPY_TEST_HOOK_SECRET"
page = "http://127.0.0.1:7433/"
[[webhook]]
url_env = "CANOPY_TEST_HOOK_URL"
secret_env = "CANOPY_TEST_HOOK_SECRET"
[policy.default]
caps = ["$1 / 24h"]
allow = ["*"]
`

func TestWebhooks(t *testing.T) {
	t.Setenv("CANOPY_TEST_HOOK_SECRET", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	posted := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { posted <- r.URL.Path }))
	defer srv.Close()
	t.Setenv("CANOPY_TEST_HOOK_URL", srv.URL+"/hush")
	f, err := config.Parse("canopy.toml", []byte(hookDocument))
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.NewMemory(ledger.Options{})
	hooks, err := f.OpenWebhooks(store)
	if err != nil || len(hooks) != 2 || hooks[0].Name() != "chat" || hooks[1].Name() != "webhook" {
		t.Fatalf("%v, %v", hooks, err)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []struct{ env, value, want string }{
		{"CANOPY_TEST_HOOK_SECRET", "", "webhook[0].secret_env: environment variable CANOPY_TEST_HOOK_SECRET is not set"},
		{"CANOPY_TEST_HOOK_SECRET", "hush-hush", "webhook[0].secret_env: environment variable CANOPY_TEST_HOOK_SECRET: approvals: a webhook's secret is whsec_"},
		{"CANOPY_TEST_HOOK_URL", "", "webhook[1].url_env: environment variable CANOPY_TEST_HOOK_URL is not set"},
		{"CANOPY_TEST_HOOK_URL", "http://hush.example/", "webhook[1].url_env: what environment variable CANOPY_TEST_HOOK_URL holds has to be https"},
	} {
		t.Setenv(bad.env, bad.value)
		for _, err := range []error{f.Check(), func() error { _, err := f.OpenWebhooks(store); return err }()} {
			if err == nil || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s = %q: %v", bad.env, bad.value, err)
			}
		}
		t.Setenv("CANOPY_TEST_HOOK_SECRET", "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
	}
}

func TestWebhookProblems(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{`name = "chat"`, `name = "a b"`}:                                                                     `line 3: webhook[0].name: is 1 to 64 letters`,
		{`name = "chat"`, `name = "webhook"`}:                                                                 `webhook[1].name: "webhook" is another webhook's`,
		{`url = "https://hooks.example/canopy"`, ``}:                                                          `webhook[0].url: is missing`,
		{`url = "https://hooks.example/canopy"`, `url = "ftp://hush.example"`}:                                `webhook[0].url: has to be https`,
		{`url = "https://hooks.example/canopy"`, `url = "https://hooks.example/"` + "\n" + `url_env = "X_Y"`}: `webhook[0].url_env: and url name two targets`,
		{`secret_env = "CANOPY_TEST_HOOK_SECRET"` + "\npage", "page"}:                                         `webhook[0].secret_env: is missing`,
		{`secret_env = "CANOPY_TEST_HOOK_SECRET"` + "\npage", `secret = "hush"` + "\npage"}:                   `webhook[0].secret: unknown key`,
		{`page = "http://127.0.0.1:7433/"`, `page = "127.0.0.1"`}:                                             `webhook[0].page: is the address of the page`,
		{`page = "http://127.0.0.1:7433/"`, `page = "http://127.0.0.1:7433/?token=hush"`}:                     `webhook[0].page: is the address of the page`,
	} {
		doc := strings.Replace(hookDocument, change[0], change[1], 1)
		_, err := config.Parse("canopy.toml", []byte(doc))
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "canopy.toml:3:", "line 3:"), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want %q", change[1], err, want)
		}
	}
}
