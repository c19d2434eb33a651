package signer

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/canopy-go/canopy/payment"
)

// maxKeystore bounds a keystore file; go-ethereum writes about 500 bytes.
const maxKeystore = 64 << 10

// FromKeystore reads a key from a Web3 keystore file of version 3. The file
// must be a regular file, not a symbolic link, of the user who runs the
// program, and readable by nobody else (ErrFile). ErrPassword stands for a
// wrong password and for a file that was tampered with: they look alike.
func FromKeystore(path, password string) (*Key, error) {
	b, err := readKeystore(path)
	if err != nil {
		return nil, err
	}
	var head struct {
		Address string `json:"address"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("%w: %s is not a keystore", ErrKey, path)
	}
	if head.Version != 3 {
		return nil, fmt.Errorf("%w: %s is not a keystore of version 3", ErrKey, path)
	}
	k, err := decrypt(b, password)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, path)
	}
	if head.Address != "" {
		digits := head.Address
		if len(digits) == 40 {
			digits = "0x" + digits
		}
		if a, err := payment.ParseAddressLoose(digits); err != nil || a != k.address {
			return nil, fmt.Errorf("%w: %s says that it holds another address than it does", ErrFile, path)
		}
	}
	return k, nil
}

// decrypt keeps what go-ethereum says, and its panics on parameters of a wrong
// type, to itself.
func decrypt(b []byte, password string) (k *Key, err error) {
	defer func() {
		if recover() != nil {
			k, err = nil, fmt.Errorf("%w: its parameters are malformed", ErrKey)
		}
	}()
	plain, err := keystore.DecryptKey(b, password)
	switch {
	case errors.Is(err, keystore.ErrDecrypt):
		return nil, ErrPassword
	case err != nil:
		return nil, fmt.Errorf("%w: its parameters are malformed", ErrKey)
	}
	// DecryptKey takes any number; ToECDSA takes keys.
	secret := crypto.FromECDSA(plain.PrivateKey)
	defer clear(secret)
	key, err := crypto.ToECDSA(secret)
	if err != nil {
		return nil, fmt.Errorf("%w: it is zero or above the order of the curve", ErrKey)
	}
	return newKey(key), nil
}

func readKeystore(path string) ([]byte, error) {
	f, err := openKeystore(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeystore+1))
	if err != nil {
		return nil, fmt.Errorf("signer: read the keystore: %w", err)
	}
	if len(b) > maxKeystore {
		return nil, fmt.Errorf("%w: %s is above %d bytes", ErrFile, path, maxKeystore)
	}
	return b, nil
}

// CreateKeystore makes a new key, writes it to a keystore file at path with
// mode 0600, and returns it as FromKeystore reads it back. It never replaces a
// file: if there is one at path, the error wraps fs.ErrExist.
func CreateKeystore(path, password string) (*Key, error) {
	return createKeystore(path, password, keystore.StandardScryptN, keystore.StandardScryptP)
}

func createKeystore(path, password string, n, p int) (*Key, error) {
	if password == "" {
		return nil, fmt.Errorf("%w: a keystore needs a password", ErrKey)
	}
	plain, err := crypto.GenerateKey()
	if err != nil {
		return nil, errors.New("signer: no randomness for a new key")
	}
	key := &keystore.Key{Address: crypto.PubkeyToAddress(plain.PublicKey), PrivateKey: plain}
	rand.Read(key.Id[:])
	key.Id[6], key.Id[8] = key.Id[6]&0x0f|0x40, key.Id[8]&0x3f|0x80 // a random UUID
	b, err := keystore.EncryptKey(key, password, n, p)
	if err != nil {
		return nil, errors.New("signer: the new key was not encrypted")
	}
	if err := writeNew(path, b); err != nil {
		return nil, fmt.Errorf("signer: write the keystore: %w", err)
	}
	return FromKeystore(path, password)
}

// writeNew writes b to a file that was not there, and makes both last. What it
// began and did not finish it removes.
func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}
