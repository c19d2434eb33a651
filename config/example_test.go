package config_test

import (
	"fmt"

	"github.com/canopy-go/canopy/config"
)

func ExampleParse() {
	_, err := config.Parse("canopy.toml", []byte(`
[treasury]
key_evn = "CANOPY_KEY"
[policy.default]
max_payment = "1"
caps = ["$5 / 24h"]
`))
	fmt.Println(err)
	// Output:
	// config: canopy.toml:3: treasury.key_evn: unknown key: did you mean key_env?
	// canopy.toml:5: policy.default.max_payment: "1" has no unit: write "$1"
}

func ExampleFile_notes() {
	file, err := config.Parse("canopy.toml", []byte(`
[[chain]]
id = "base"
rpc = ["https://rpc.example", "https://rpc.example.org"]
facilitator = "https://facilitator.example"
max_gas = "0.0005"
[policy.default]
caps = ["$5 / 24h"]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, note := range file.Notes {
		fmt.Println(note)
	}
	// Output:
	// chain[0].max_gas: has no effect: direct transfers go through the facilitator, which pays the gas
}
