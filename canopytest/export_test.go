package canopytest

// EncodeForTest writes tx again from the fields that were read.
func EncodeForTest(tx *TempoTx) []byte {
	return encodeTempo(tx.raw[0], append(tx.fields[:len(tx.fields):len(tx.fields)], rlpText(tx.Signature)))
}

// JCSForTest is jcs.
func JCSForTest(v any) []byte { return jcs(v) }

// Base64ForTest is anyBase64.
var Base64ForTest = anyBase64

// ProofForTest is proofDigest.
var ProofForTest = proofDigest

// ChallengeForTest is the id and the header of a challenge with those parameters,
// under another secret.
func ChallengeForTest(secret string, params map[string]string) (id, header string) {
	c := mppChallenge{
		realm: params["realm"], method: params["method"], intent: params["intent"], request: params["request"], expires: params["expires"],
		digest: params["digest"], description: params["description"], opaque: params["opaque"], header: params["header"],
	}
	c.id = c.sealWith([]byte(secret))
	return c.id, c.String()
}
