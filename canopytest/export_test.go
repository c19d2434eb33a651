package canopytest

// EncodeForTest writes tx again from the fields that were read.
func EncodeForTest(tx *TempoTx) []byte {
	return encodeTempo(tx.raw[0], append(tx.fields[:len(tx.fields):len(tx.fields)], rlpText(tx.Signature)))
}
