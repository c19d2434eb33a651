package x402

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/canopy-go/canopy/internal/jsonscan"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/payment"
)

// Codes of the rail's own, where a seller's answer is not believed. The claim
// is then none.
const (
	codeUnreadable = "receipt_unreadable"
	codeSeveral    = "receipt_several"
	codeNetwork    = "receipt_of_another_network"
	codePayer      = "receipt_of_another_payer"
	codeAmount     = "receipt_of_another_amount"
	codeTx         = "receipt_without_transaction"
	codeDisagrees  = "receipt_disagrees_with_itself"
)

const (
	maxMessage = 256

	// What sellers say of a nonce that was used, and of a transaction that
	// was sent and is not mined.
	nonceUsed = "nonce_already_used"
	pending   = "settlement_pending"
)

// Receipt reads what the seller says of g's settlement: the receipt header of
// any status, else, after an error status, the PAYMENT-REQUIRED header, else the
// body of a 402. Everything but a receipt of success that names this payment's
// own network, payer and amount, where it names any, leaves open what became of
// the money; the zero Receipt says that nothing readable was there.
func (r *Rail) Receipt(resp *http.Response, g payment.Grant) (payment.Receipt, error) {
	if g.Terms.Rail != Name {
		return payment.Receipt{}, fmt.Errorf("%w: %w", ErrGrant, payment.ErrNotMine)
	}
	own, other := headerResponse, headerResponseV1
	if g.Version == 1 {
		own, other = other, own
	}
	values := resp.Header.Values(own)
	if len(values) == 0 {
		values = resp.Header.Values(other)
	}
	switch len(values) {
	case 0:
		return refusal(resp, g), nil
	case 1:
		return settlement(values[0], g), nil
	}
	return payment.Receipt{Code: codeSeveral}, nil
}

// response is a SettlementResponse.
type response struct {
	success                                           jsonscan.Value
	reason, message, tx, network, payer, amount, none jsonscan.Value
}

// settlement reads a receipt header.
func settlement(value string, g payment.Grant) payment.Receipt {
	s, err := readResponse(value)
	if err != nil {
		return payment.Receipt{Code: codeUnreadable}
	}
	return s.receipt(g)
}

func readResponse(value string) (s response, err error) {
	doc, err := unwrap(value)
	if err != nil {
		return s, err
	}
	v, err := parse(doc)
	if err != nil {
		return s, err
	}
	err = v.Object(func(key string, val jsonscan.Value) error {
		*s.field(key) = val
		return nil
	})
	if err != nil {
		return s, err
	}
	_, err = s.success.Bool()
	return s, err
}

// receipt is what s says of g's settlement.
func (s *response) receipt(g payment.Grant) payment.Receipt {
	out := payment.Receipt{Code: plaintext.Code(text(s.reason)), Message: said(s.message, s.reason)}
	if why := s.foreign(g); why != "" {
		out.Code = why
		return out
	}
	out.TxHash = txHash(text(s.tx))
	out.Amount, _ = payment.ParseUnits(text(s.amount))
	success, _ := s.success.Bool() // readResponse has seen it
	out.Claim = claim(success, out, &out.Code)
	return out
}

func (s *response) field(key string) *jsonscan.Value {
	switch key {
	case "success":
		return &s.success
	case "errorReason":
		return &s.reason
	case "errorMessage":
		return &s.message
	case "transaction":
		return &s.tx
	case "network":
		return &s.network
	case "payer":
		return &s.payer
	case "amount":
		return &s.amount
	}
	return &s.none
}

// foreign says what in s is another payment's. What s leaves out is not held
// against it.
func (s *response) foreign(g payment.Grant) string {
	if n := s.network; !absent(n) && n.Raw() != `""` {
		// A seller of one version may name its network as the other does.
		if c, ok := chainOf(text(n), 1); !ok || c != g.Terms.Asset.Chain {
			return codeNetwork
		}
	}
	if p := s.payer; !absent(p) && p.Raw() != `""` && !sameAddress(text(p), g.Payer) {
		return codePayer
	}
	if a := s.amount; !absent(a) && a.Raw() != `""` {
		u, err := payment.ParseUnits(text(a))
		if ok, _ := s.success.Bool(); err != nil || u != g.Terms.Amount && (ok || !u.IsZero()) {
			return codeAmount
		}
	}
	return ""
}

// claim weighs a receipt of this payment.
func claim(success bool, r payment.Receipt, code *string) payment.Claim {
	switch {
	case success && r.Code == pending:
		return payment.ClaimPending
	case success && r.Code != "":
		*code = codeDisagrees
		return payment.ClaimNone
	case success && r.TxHash == "":
		*code = codeTx
		return payment.ClaimNone
	case success:
		return payment.ClaimPaid
	case strings.HasSuffix(r.Code, nonceUsed):
		return payment.ClaimUsed
	case r.Code == pending || r.TxHash != "":
		return payment.ClaimPending
	}
	return payment.ClaimRefused
}

// refusal reads an answer without a receipt. Only an error status says
// anything, and only of a 402 is the body read.
func refusal(resp *http.Response, g payment.Grant) payment.Receipt {
	if resp.StatusCode < 400 {
		return payment.Receipt{}
	}
	var (
		c   challenge
		err error
	)
	switch headers := resp.Header.Values(headerRequired); {
	case len(headers) > 1:
		return payment.Receipt{Code: codeSeveral}
	case len(headers) == 1:
		if c, err = readHeader(headers[0]); err != nil {
			return payment.Receipt{Code: codeUnreadable}
		}
	case resp.StatusCode != http.StatusPaymentRequired || resp.Body == nil:
		return payment.Receipt{}
	default:
		body, ioErr := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
		if c, err = readBody(body); errors.Is(err, payment.ErrNotMine) || ioErr != nil {
			return payment.Receipt{}
		} else if err != nil {
			return payment.Receipt{Code: codeUnreadable}
		}
	}
	out := payment.Receipt{Claim: payment.ClaimRefused, Code: plaintext.Code(text(c.message)), Message: said(c.message)}
	switch {
	case !absent(c.payer) && !sameAddress(text(c.payer), g.Payer):
		out.Claim, out.Code = payment.ClaimNone, codePayer
	case strings.HasSuffix(out.Code, nonceUsed):
		out.Claim = payment.ClaimUsed
	case out.Code == pending:
		out.Claim = payment.ClaimPending
	}
	return out
}

// said is the first of the values that says anything, cleaned and bounded.
func said(values ...jsonscan.Value) string {
	for _, v := range values {
		if s := plaintext.Clean(text(v), maxMessage); s != "" {
			return s
		}
	}
	return ""
}

func sameAddress(s string, a payment.Address) bool {
	got, err := payment.ParseAddressLoose(s)
	return err == nil && got == a
}

// txHash is s in lower case, or nothing where it is not 0x and 64 hex digits
// that are not all zero.
func txHash(s string) string {
	s = strings.ToLower(s)
	if len(s) != 66 || s[:2] != "0x" || strings.Trim(s[2:], "0123456789abcdef") != "" || strings.Trim(s[2:], "0") == "" {
		return ""
	}
	return s
}
