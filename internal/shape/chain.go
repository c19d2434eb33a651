package shape

import "github.com/canopy-go/canopy/payment"

// ChainState is how a chain stands that can be asked.
type ChainState struct {
	OK        bool   `json:"ok"`
	ChainID   uint64 `json:"chainId"`
	Name      string `json:"name"`
	Nodes     int    `json:"nodes"` // that have to agree
	Latest    *Block `json:"latest,omitempty"`
	Finalized *Block `json:"finalized,omitempty"`
	Balances  []Held `json:"balances,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Block is a block and its time.
type Block struct {
	Number uint64 `json:"number"`
	At     *Time  `json:"at"`
}

// BlockOf is the shape of b.
func BlockOf(b payment.Block) *Block { return &Block{b.Number, at(b.Time)} }

// Held is what an account holds of a token.
type Held struct {
	Symbol string          `json:"symbol"`
	Token  payment.Address `json:"token"`
	USD    payment.USD     `json:"usd"`
}
