package mpp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/canopy-go/canopy/internal/mppserver"
)

// wire is testdata/wire.json: what another implementation wrote.
type wire struct {
	SecretKey  string
	Challenges []struct {
		Challenge struct {
			ID, Realm, Method, Intent, Expires, Digest, Opaque, Header, Description string

			Request json.RawMessage
		}
		Header, JCS, RequestB64 string
	}
	Credential, CredentialWithOpaque, Receipt string

	OtherLetters struct{ Header, Realm, Description string }

	BodyDigest struct{ Body, Mppx, RFC9530 string }
	Proof      struct{ Signature, Source string }
}

func readWire(t testing.TB) (w wire) {
	t.Helper()
	b, err := os.ReadFile("testdata/wire.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &w); err != nil {
		t.Fatal(err)
	}
	for i := range w.Challenges {
		w.Challenges[i].Header = latin1(t, w.Challenges[i].Header)
	}
	return w
}

// latin1 is s as it stands on the wire: one byte for each code point.
func latin1(t testing.TB, s string) string {
	t.Helper()
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			t.Fatalf("%q is not Latin-1", s)
		}
		b = append(b, byte(r))
	}
	return string(b)
}

func TestChallengesOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	for _, v := range readWire(t).Challenges {
		found, bad := readChallenges([]string{v.Header})
		if len(found) != 1 || len(bad) != 0 {
			t.Fatalf("readChallenges(%s) = %d challenges, skipped %v", v.Header, len(found), bad)
		}
		c, want := found[0], v.Challenge
		got := []string{c.id, c.realm, c.method, c.intent, c.expiresText, c.digestText, c.opaque, c.header, c.description, c.request, c.requestJSON.Raw()}
		if diff := cmp.Diff([]string{want.ID, want.Realm, want.Method, want.Intent, want.Expires, want.Digest, want.Opaque, want.Header, want.Description, v.RequestB64, v.JCS}, got); diff != "" {
			t.Errorf("challenge (-want +got):\n%s", diff)
		}
		if c.expires.UTC().Format("2006-01-02T15:04:05") != "2026-01-01T00:00:00" {
			t.Errorf("expires = %v", c.expires)
		}
		q, why := readTempoCharge(c.requestJSON)
		if why != (skip{}) || q.chainID != 42431 || !q.feePayer || q.currency.Lower() != "0x20c0000000000000000000000000000000000000" || !q.pull || !q.push {
			t.Errorf("readTempoCharge = %+v, %v", q, why)
		}
	}
}

// TestLettersOfAnotherImplementation: a realm in other letters comes back as it
// was issued, under the same id.
func TestLettersOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	w := readWire(t)
	v := w.OtherLetters
	found, bad := readChallenges([]string{latin1(t, v.Header)})
	if len(found) != 1 || found[0].realm != v.Realm || found[0].description != v.Description {
		t.Fatalf("readChallenges(%q) = %+v, skipped %v", v.Header, found, bad)
	}
	echo, _ := found[0].echo()
	c, err := mppserver.ReadCredential(writeCredential(echo, proof{}, source{}))
	if err != nil || !c.Challenge.Issued([]byte(w.SecretKey)) || c.Challenge.Line() != latin1(t, v.Header) {
		t.Errorf("the seller did not issue %+v: %v", c.Challenge, err)
	}
}

// TestChallengesOverHTTP: bytes beyond ASCII and several lines arrive as they
// were sent.
func TestChallengesOverHTTP(t *testing.T) {
	t.Parallel()
	w := readWire(t)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Add("WWW-Authenticate", `Basic realm="x"`)
		for _, v := range w.Challenges {
			rw.Header().Add("WWW-Authenticate", v.Header)
		}
		rw.WriteHeader(http.StatusPaymentRequired)
	}))
	defer s.Close()
	resp, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	found, bad := readChallenges(resp.Header.Values("WWW-Authenticate"))
	if len(found) != len(w.Challenges) {
		t.Fatalf("%d challenges, skipped %v", len(found), bad)
	}
	for i, v := range w.Challenges {
		if found[i].id != v.Challenge.ID || found[i].description != v.Challenge.Description {
			t.Errorf("challenge %d = %+v", i, found[i])
		}
	}
}

// decoded is the JSON of a credential.
func decoded(t testing.TB, credential string) (v any) {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(credential, "Payment "))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCredentialsOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	w := readWire(t)
	var sig proof
	if !readHex(sig[:], w.Proof.Signature) {
		t.Fatal(w.Proof.Signature)
	}
	hash := txHash([]byte(strings.Repeat("\xab", 32)))
	from, ok := readSource(w.Proof.Source)
	if !ok {
		t.Fatal(w.Proof.Source)
	}
	for _, tt := range []struct {
		name      string
		challenge int
		payload   payload
		source    source
		want      string
	}{
		{"proof", 2, sig, from, w.Credential},
		{"hash with opaque", 1, hash, source{}, w.CredentialWithOpaque},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, _ := readChallenges([]string{w.Challenges[tt.challenge].Header})
			echo, why := found[0].echo()
			if why != (skip{}) {
				t.Fatal(why)
			}
			got := writeCredential(echo, tt.payload, tt.source)
			if diff := cmp.Diff(decoded(t, tt.want), decoded(t, got)); diff != "" {
				t.Errorf("credential (-want +got):\n%s", diff)
			}
			for _, text := range []string{got, tt.want} {
				c, err := readCredential(text)
				if err != nil {
					t.Fatal(err)
				}
				c.challenge.requestJSON, found[0].requestJSON = found[0].requestJSON, c.challenge.requestJSON
				if diff := cmp.Diff([]any{tt.payload, tt.source, found[0].id, found[0].opaque, found[0].description}, []any{c.payload, c.source, c.challenge.id, c.challenge.opaque, c.challenge.description}, cmp.AllowUnexported(source{})); diff != "" {
					t.Errorf("read back (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestDigestOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	d := readWire(t).BodyDigest
	for _, s := range []string{d.Mppx, strings.TrimRight(d.Mppx, "="), d.RFC9530} {
		got, why := readDigest(s)
		if want := sha256.Sum256([]byte(d.Body)); why != (skip{}) || got != want {
			t.Errorf("readDigest(%s) = %x, %v, want %x", s, got, why, want)
		}
	}
}
