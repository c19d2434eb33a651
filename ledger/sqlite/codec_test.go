//go:build linux || darwin

package sqlite

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// fill sets every exported field of v to something, or leaves some zero.
func fill(r *rand.Rand, v reflect.Value, zeros bool) {
	if zeros && r.IntN(3) == 0 {
		return
	}
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = fromMicro(r.Int64N(1 << 52))
		return
	case *payment.Units:
		var b [32]byte
		for i := r.IntN(32); i < 32; i++ {
			b[i] = byte(r.Uint32())
		}
		*x = payment.UnitsFromBytes(b)
		return
	case *payment.Permit:
		return // never stored
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), zeros)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i), zeros)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), zeros)
		}
	case reflect.String:
		b := make([]byte, 1+r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		v.SetString(string(b))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1 + r.Int64N(1<<40))
	case reflect.Uint64:
		v.SetUint(1 + r.Uint64()>>1)
	case reflect.Uint8:
		v.SetUint(1 + uint64(r.IntN(4)))
	default:
		panic("a field of a kind that is not known here: " + v.Kind().String())
	}
}

func roundTrip(t *testing.T, e *ledger.Entry) {
	t.Helper()
	body := encodeEntry(e)
	got := ledger.Entry{
		ID: e.ID, Agent: e.Agent, State: e.State, Version: e.Version, Spent: e.Spent, Host: e.Host, Shared: e.Shared,
		CreatedAt: e.CreatedAt, Fingerprint: e.Fingerprint,
	}
	if err := decodeEntry(body, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*e, got) {
		t.Fatalf("got  %+v\nwant %+v", got, *e)
	}
	if bytes.Contains(body, []byte("secret")) {
		t.Fatal("a secret was stored")
	}
}

// TestEntryCodec: every field of an entry comes back, one that is added to the
// type among them.
func TestEntryCodec(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	roundTrip(t, &ledger.Entry{})
	for i := range 2000 {
		var e ledger.Entry
		fill(r, reflect.ValueOf(&e).Elem(), i > 10)
		if e.Slot.Kind == payment.SlotNone {
			e.Slot = payment.Slot{}
		}
		roundTrip(t, &e)
	}
}

func TestApprovalCodec(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		var a ledger.Approval
		fill(r, reflect.ValueOf(&a).Elem(), i > 10)
		got, err := decodeApproval(string(a.ID), encodeApproval(&a))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, *got) {
			t.Fatalf("got  %+v\nwant %+v", *got, a)
		}
	}
}

// TestScopeKeys: different scopes and windows have different keys, whatever
// their texts.
func TestScopeKeys(t *testing.T) {
	seen := map[string]policy.Scope{}
	texts := []string{"", "a", "ab", "b", "a b", "default", "\x01", "\x01a", "host:a", "a host:b"}
	for _, k := range []policy.ScopeKind{policy.ScopeAgent, policy.ScopeOrg, policy.ScopeHost, policy.ScopePayee} {
		for _, shared := range []bool{false, true} {
			for _, agent := range texts {
				for _, host := range texts {
					s := policy.Scope{Kind: k, Shared: shared, Agent: agent, Host: host}
					if k == policy.ScopePayee {
						s.Payee = payment.Address{1}
					}
					key := string(scopeKey(s))
					if other, ok := seen[key]; ok {
						t.Fatalf("%+v and %+v have one key", s, other)
					}
					seen[key] = s
					if got, err := parseScope([]byte(key)); err != nil || got != s {
						t.Fatalf("%+v comes back as %+v, %v", s, got, err)
					}
				}
			}
		}
	}
	for _, w := range []policy.Window{day, hour, {Kind: policy.Ever}, {Kind: policy.Day, Zone: "Europe/Berlin"}, {Kind: policy.Day, Zone: "UTC"}} {
		if got, err := parseWindow(windowKey(w)); err != nil || got != w {
			t.Errorf("%+v comes back as %+v, %v", w, got, err)
		}
	}
}

// FuzzDecodeEntry: no bytes make a record panic, and what is taken is what
// would be written.
func FuzzDecodeEntry(f *testing.F) {
	e := ledger.Entry{ID: "x", Echo: []byte("echo"), Note: "note"}
	f.Add(encodeEntry(&e))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		e := ledger.Entry{ID: "x"}
		if err := decodeEntry(b, &e); err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		// The same without the sum, which a fuzzer does not guess.
		r := &reader{b: b}
		var terms payment.Terms
		r.terms(&terms)
		r.reasons()
		_ = r.end()
	})
}
