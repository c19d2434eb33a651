package signer_test

import (
	"fmt"

	"github.com/canopy-go/canopy/signer"
)

// A key prints as its address, whatever the verb.
func ExampleFromHex() {
	key, err := signer.FromHex("0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v\n%+v\n%x\n", key, key, *key)
	// Output:
	// 0x2c7536E3605D9C16a7a3D7b1898e529396a65c23
	// 0x2c7536E3605D9C16a7a3D7b1898e529396a65c23
	// 0x2c7536E3605D9C16a7a3D7b1898e529396a65c23
}
