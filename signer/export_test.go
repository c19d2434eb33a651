package signer

// CreateLightKeystore is CreateKeystore with a key derivation that tests need
// not wait for and nobody should use.
func CreateLightKeystore(path, password string) (*Key, error) {
	return createKeystore(path, password, 16, 1)
}
