package config

import (
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/internal/clock"
	"github.com/canopy-go/canopy/ledger"
)

// Webhook is one [[webhook]]: where people are told of payments that wait.
type Webhook struct {
	Name      string // webhook where empty; no two are called the same
	URL       string
	URLEnv    string // environment variable with the URL, where that is a secret
	SecretEnv string // environment variable with the secret that signs
	Page      string // the address of the page, for people to follow
}

// defaultHook is a webhook's name in the outbox where it has none.
const defaultHook = "webhook"

func (f *File) webhookTables(d *document) {
	names := map[string]bool{}
	for _, t := range d.tables("webhook") {
		w := Webhook{Name: t.text("name"), URL: t.text("url"), URLEnv: t.env("url_env"), SecretEnv: t.env("secret_env"), Page: t.text("page")}
		t.done()
		if w.Name == "" {
			w.Name = defaultHook
		}
		switch {
		case ledger.CheckChannel(w.Name) != nil:
			t.problem("name", "is 1 to 64 letters, digits, dots, hyphens and underscores")
		case names[w.Name]:
			t.problem("name", "%q is another webhook's: what is due is kept by name, so give each its own", w.Name)
		}
		names[w.Name] = true
		switch {
		case w.URL == "" && w.URLEnv == "":
			t.problem("url", "is missing: where people are told, such as https://hooks.example/canopy (or url_env)")
		case w.URL != "" && w.URLEnv != "":
			t.problem("url_env", "and url name two targets: keep one")
		case w.URL != "":
			if err := approvals.CheckHookURL(w.URL); err != nil {
				t.problem("url", "%s", err)
			}
		}
		if w.SecretEnv == "" {
			t.problem("secret_env", "is missing: the environment variable with the secret that signs, whsec_ and base64 of 24 to 64 random bytes")
		}
		if u, err := url.Parse(w.Page); w.Page != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "") {
			t.problem("page", "is the address of the page, such as http://127.0.0.1:7433/, without a secret")
		}
		f.Webhooks = append(f.Webhooks, w)
	}
}

// OpenWebhooks returns the webhooks of the file, which deliver from the outbox of
// store. What the environment does not hold is an error.
func (f *File) OpenWebhooks(store ledger.Store) ([]*approvals.Webhook, error) {
	all, err := f.webhookConfigs()
	if err != nil {
		return nil, err
	}
	out := make([]*approvals.Webhook, len(all))
	for i, c := range all {
		c.Store = store
		if out[i], err = approvals.NewWebhook(c); err != nil {
			return nil, fmt.Errorf("config: webhook[%d]: %w", i, err)
		}
	}
	return out, nil
}

// webhookConfigs are those of the webhooks, but for the store.
func (f *File) webhookConfigs() ([]approvals.WebhookConfig, error) {
	var out []approvals.WebhookConfig
	for i, w := range f.Webhooks {
		held := func(key, env string) (string, error) {
			value := os.Getenv(env)
			if value == "" {
				return "", fmt.Errorf("config: webhook[%d].%s: environment variable %s is not set", i, key, env)
			}
			return value, nil
		}
		c := approvals.WebhookConfig{Name: w.Name, URL: w.URL, Page: w.Page, Logger: f.Logger}
		var err error
		if w.URLEnv != "" {
			if c.URL, err = held("url_env", w.URLEnv); err != nil {
				return nil, err
			}
			if err := approvals.CheckHookURL(c.URL); err != nil {
				return nil, fmt.Errorf("config: webhook[%d].url_env: what environment variable %s holds %w", i, w.URLEnv, err)
			}
		}
		secret, err := held("secret_env", w.SecretEnv)
		if err != nil {
			return nil, err
		}
		if c.Secret, err = approvals.ParseHookSecret(secret); err != nil {
			return nil, fmt.Errorf("config: webhook[%d].secret_env: environment variable %s: %w", i, w.SecretEnv, err)
		}
		if f.Now != nil {
			c.Clock = clock.Func(f.Now)
		}
		if f.Network.Proxy != nil {
			t := http.DefaultTransport.(*http.Transport).Clone()
			t.Proxy = http.ProxyURL(f.Network.Proxy)
			c.Transport = t
		}
		out = append(out, c)
	}
	return out, nil
}
