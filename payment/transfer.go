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

// TransferError says which field of a Transfer cannot be carried out, and why,
// whatever the policy says. Nothing was signed.
type TransferError struct {
	Field string // To, Amount, Chain, Key, Purpose or Memo
	Err   error
}

// Error names the field.
func (e *TransferError) Error() string { return "Transfer." + e.Field + ": " + e.Err.Error() }

// Unwrap is Err.
func (e *TransferError) Unwrap() error { return e.Err }
