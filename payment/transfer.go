package payment

// Transfer is a direct payment of dollars to an address, without a seller.
type Transfer struct {
	To      Address
	Amount  USD
	Chain   ChainID // Base where empty
	Key     string  // makes a repeated call the same payment; empty for none
	Purpose string  // for people
	Memo    string  // for the payee, where the chain carries one
}
