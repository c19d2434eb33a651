package signer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ethkeystore "github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/signer"
)

const password = "correct horse battery"

func keystore(t *testing.T) (string, *signer.Key) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key.json")
	k, err := signer.CreateLightKeystore(path, password)
	if err != nil {
		t.Fatal(err)
	}
	return path, k
}

func TestKeystoreRoundTrip(t *testing.T) {
	t.Parallel()
	path, made := keystore(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v; want 0600", info.Mode(), err)
	}
	read, err := signer.FromKeystore(path, password)
	if err != nil || read.Address() != made.Address() {
		t.Fatalf("read %v, %v; want %v", read, err, made)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signer.CreateLightKeystore(path, password); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second key at the same path: %v, want fs.ErrExist", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file changed (%v)", err)
	}
}

func TestCreateKeystoreRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := signer.CreateLightKeystore(filepath.Join(dir, "key.json"), ""); !errors.Is(err, signer.ErrKey) {
		t.Errorf("no password: %v", err)
	}
	if _, err := signer.CreateLightKeystore(filepath.Join(dir, "none", "key.json"), password); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(filepath.Join(dir, "elsewhere.json"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := signer.CreateLightKeystore(link, password); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a dangling symbolic link: %v, want fs.ErrExist", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestKeystoreWrongPassword(t *testing.T) {
	t.Parallel()
	path, _ := keystore(t)
	for _, wrong := range []string{"", "Correct horse battery", password + " ", "wrong-canary-password"} {
		k, err := signer.FromKeystore(path, wrong)
		if !errors.Is(err, signer.ErrPassword) || k != nil {
			t.Errorf("%q: %v, %v; want ErrPassword", wrong, k, err)
		}
		if wrong != "" && strings.Contains(err.Error(), wrong) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func TestKeystoreUnsafeFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes and links of unix")
	}
	for _, mode := range []fs.FileMode{0o644, 0o640, 0o604, 0o660, 0o601, 0o610} {
		path, _ := keystore(t)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := signer.FromKeystore(path, password); !errors.Is(err, signer.ErrFile) {
			t.Errorf("mode %04o: %v, want ErrFile", mode, err)
		}
	}
	path, _ := keystore(t)
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := signer.FromKeystore(link, password); !errors.Is(err, signer.ErrFile) {
		t.Errorf("a symbolic link: %v, want ErrFile", err)
	}
	if _, err := signer.FromKeystore(filepath.Dir(path), password); !errors.Is(err, signer.ErrFile) {
		t.Errorf("a directory: %v, want ErrFile", err)
	}
	if _, err := signer.FromKeystore(path+".none", password); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want fs.ErrNotExist", err)
	}
	if _, err := signer.FromKeystore("/dev/zero", password); !errors.Is(err, signer.ErrFile) {
		t.Errorf("a device: %v, want ErrFile", err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := signer.FromKeystore(path, password); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestKeystoreMalformed(t *testing.T) {
	t.Parallel()
	path, _ := keystore(t)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edit := func(f func(doc, crypto map[string]any)) string {
		var doc map[string]any
		if err := json.Unmarshal(good, &doc); err != nil {
			t.Fatal(err)
		}
		f(doc, doc["crypto"].(map[string]any))
		b, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, tc := range []struct {
		name, file string
		want       error
	}{
		{"empty", "", signer.ErrKey},
		{"not JSON", canary, signer.ErrKey},
		{"no version", "{}", signer.ErrKey},
		{"version 1", edit(func(doc, _ map[string]any) { doc["version"] = 1 }), signer.ErrKey},
		{"version as text", edit(func(doc, _ map[string]any) { doc["version"] = "3" }), signer.ErrKey},
		{"unknown cipher", edit(func(_, c map[string]any) { c["cipher"] = "none" }), signer.ErrKey},
		{"unknown derivation", edit(func(_, c map[string]any) { c["kdf"] = "md5" }), signer.ErrKey},
		{"parameters of a wrong type", edit(func(_, c map[string]any) { c["kdfparams"] = map[string]any{"salt": 7, "n": "x"} }), signer.ErrKey},
		{"another mac", edit(func(_, c map[string]any) { c["mac"] = strings.Repeat("0", 64) }), signer.ErrPassword},
		{"another address", edit(func(doc, _ map[string]any) { doc["address"] = address[2:] }), signer.ErrFile},
		{"address that is none", edit(func(doc, _ map[string]any) { doc["address"] = "zz" }), signer.ErrFile},
		{"above 64 KiB", string(good) + strings.Repeat(" ", 64<<10), signer.ErrFile},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key.json")
			if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			k, err := signer.FromKeystore(path, password)
			if !errors.Is(err, tc.want) || k != nil {
				t.Errorf("%v, %v; want %v", k, err, tc.want)
			}
			if err != nil && leaks(err.Error()) {
				t.Errorf("the error repeats the file: %v", err)
			}
		})
	}
}

// A keystore may decrypt to bytes that are no key.
func TestKeystoreOfNoKey(t *testing.T) {
	t.Parallel()
	order := crypto.S256().Params().N
	for name, secret := range map[string][]byte{
		"zero":            make([]byte, 32),
		"the order":       order.Bytes(),
		"above the order": bytes.Repeat([]byte{0xff}, 32),
		"short":           {1, 2, 3},
		"long":            append([]byte{1}, make([]byte, 32)...),
		"empty":           {},
	} {
		sealed, err := ethkeystore.EncryptDataV3(secret, []byte(password), 16, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(map[string]any{"crypto": sealed, "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "key.json")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := signer.FromKeystore(path, password)
		if !errors.Is(err, signer.ErrKey) || k != nil {
			t.Errorf("%s: %v, %v; want ErrKey", name, k, err)
		}
	}
}
