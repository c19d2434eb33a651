package mppserver_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/internal/mppserver"
)

// TestVectors holds ids, headers and requests against what another
// implementation made of the same challenges.
func TestVectors(t *testing.T) {
	t.Parallel()
	var wire struct {
		SecretKey  string
		Challenges []struct {
			Challenge struct {
				mppserver.Challenge
				Request json.RawMessage `json:"request"`
			}
			Header, JCS, RequestB64 string
		}
		Credential, CredentialWithOpaque string
	}
	b, err := os.ReadFile("../../mpp/testdata/wire.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &wire); err != nil {
		t.Fatal(err)
	}
	if len(wire.Challenges) != 3 {
		t.Fatalf("%d challenges", len(wire.Challenges))
	}
	secret := []byte(wire.SecretKey)
	for _, v := range wire.Challenges {
		doc, err := mppserver.Canonical(v.Challenge.Request)
		if err != nil || string(doc) != v.JCS {
			t.Errorf("Canonical = %s, %v, want %s", doc, err, v.JCS)
		}
		c := v.Challenge.Challenge
		if c.Request, err = mppserver.Encode(v.Challenge.Request); err != nil || c.Request != v.RequestB64 {
			t.Errorf("Encode = %s, %v, want %s", c.Request, err, v.RequestB64)
		}
		if got := c.MAC(secret); got != c.ID || !c.Issued(secret) {
			t.Errorf("MAC = %s, want %s", got, c.ID)
		}
		var want []byte
		for _, r := range v.Header {
			want = append(want, byte(r))
		}
		if got := c.Sign(secret).Line(); got != string(want) {
			t.Errorf("Line = %q, want %q", got, want)
		}
	}
	for i, value := range map[int]string{1: wire.CredentialWithOpaque, 2: wire.Credential} {
		c, err := mppserver.ReadCredential(value)
		if err != nil || !c.Challenge.Issued(secret) || c.Challenge.ID != wire.Challenges[i].Challenge.ID {
			t.Errorf("credential %d: %+v, %v", i, c, err)
		}
		if want := map[int]string{1: "hash", 2: "proof"}[i]; c.PayloadType() != want {
			t.Errorf("credential %d: a payload of %q, want %q", i, c.PayloadType(), want)
		}
	}
}

func TestMACBindsAllButTheDescription(t *testing.T) {
	t.Parallel()
	secret := []byte("s")
	c := mppserver.Challenge{Realm: "r", Method: "m", Intent: "i", Request: "q", Description: "d"}
	id := c.MAC(secret)
	for name, change := range map[string]func(*mppserver.Challenge){
		"realm":   func(c *mppserver.Challenge) { c.Realm = "x" },
		"method":  func(c *mppserver.Challenge) { c.Method = "x" },
		"intent":  func(c *mppserver.Challenge) { c.Intent = "x" },
		"request": func(c *mppserver.Challenge) { c.Request = "x" },
		"expires": func(c *mppserver.Challenge) { c.Expires = "x" },
		"digest":  func(c *mppserver.Challenge) { c.Digest = "x" },
		"opaque":  func(c *mppserver.Challenge) { c.Opaque = "x" },
		"header":  func(c *mppserver.Challenge) { c.Header = "x" },
	} {
		other := c
		if change(&other); other.MAC(secret) == id {
			t.Errorf("%s is not bound", name)
		}
	}
	if c.Description = "x"; c.MAC(secret) != id {
		t.Error("the description is bound")
	}
	if c.MAC([]byte("t")) == id {
		t.Error("the secret is not bound")
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, want string }{
		{`{"b":1,"a":{"d":null,"c":[true,false,-0,9007199254740991]}}`, `{"a":{"c":[true,false,0,9007199254740991],"d":null},"b":1}`},
		{`{"\ufb00":1,"\ud83d\ude00":2,"\u20ac":3,"\r":4,"1":5}`, `{"\r":4,"1":5,"€":3,"😀":2,"ﬀ":1}`}, // UTF-16 order is not that of UTF-8
		{`"Access <premium> & \u2028 \u001f\b\f\t\" \\ \/"`, "\"Access <premium> & \u2028 \\u001f\\b\\f\\t\\\" \\\\ /\""},
		{`1.5`, ``}, {`1e21`, ``}, {`9007199254740992`, ``},
	} {
		got, err := mppserver.Canonical(json.RawMessage(tt.doc))
		if (err == nil) != (tt.want != "") {
			t.Errorf("Canonical(%s): %v", tt.doc, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("Canonical(%s) (-want +got):\n%s", tt.doc, diff)
		}
	}
	if got, err := mppserver.Canonical(struct {
		Z string `json:"z"`
		A uint64 `json:"a"`
	}{"<", 7}); err != nil || string(got) != `{"a":7,"z":"<"}` {
		t.Errorf("Canonical of a struct = %s, %v", got, err)
	}
	if _, err := mppserver.Canonical(uint64(math.MaxUint64)); err == nil {
		t.Error("a number that readers round was written")
	}
}

func TestReadCredentialRefuses(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "Payment", "Bearer e30", "Payment $", "Payment e30e30", "Payment bnVsbA x", "Payment eyJhIjoxfQ"} {
		if c, err := mppserver.ReadCredential(value); err == nil {
			t.Errorf("ReadCredential(%s) = %+v", value, c)
		}
	}
}
