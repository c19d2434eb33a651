package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/internal/plaintext"
	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
)

// fetch is one call of canopy fetch.
type fetch struct {
	*app
	request requestFlags

	output   string
	include  bool
	silent   bool
	follow   bool
	fail     bool
	maxTime  time.Duration
	key      string
	maxPrice string
	purpose  string
	ask      bool
	wait     time.Duration
}

func (a *app) fetchCommand() *cobra.Command {
	f := &fetch{app: a}
	c := &cobra.Command{
		Use:   "fetch URL",
		Short: "Fetch a URL, and pay for it where the seller asks",
		Long: `Fetch sends a request as curl does. Where the seller asks for payment and the
policy allows it, it pays and prints the answer. Nothing is paid twice: the same
--key is the same purchase, and a call equal to one that is not resolved is
answered by that one.

An answer after payment exits 0 with a status of 2xx or 3xx, else 6 with a
receipt and 5 without.

-o writes over none of the configuration, the keystore, the ledger with the files
beside it, and what is in [ledger] state_dir. Of these -d @FILE sends the
configuration only, and it does not send the environment of a process.`,
		Example: `  canopy fetch https://feed.example/depth/btc-usd
  canopy fetch -d '{"symbol":"btc-usd"}' -H 'content-type: application/json' https://feed.example/query
  canopy fetch https://feed.example/report.pdf -o report.pdf --max-price 0.50 --key report-7
  canopy fetch https://feed.example/dear --wait 5m --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, withScheme(args[0])) },
	}
	fl := c.Flags()
	f.request.register(fl)
	fl.StringVarP(&f.output, "output", "o", "", "write the body to `FILE`; - for standard output as it is")
	fl.BoolVarP(&f.include, "include", "i", false, "print the status and the headers of the answer")
	fl.BoolVarP(&f.silent, "silent", "s", false, "say nothing beside the answer")
	fl.BoolVarP(&f.follow, "location", "L", false, "follow redirects; never paid on another origin")
	fl.BoolVarP(&f.fail, "fail", "f", false, "exit 1, and print no body, where an unpaid answer has a status of 400 or above")
	lengthVar(fl, &f.maxTime, "max-time", "m", "give up after `SECONDS`, such as 30 or 1.5 or 2m")
	fl.StringVar(&f.key, "key", "", "`TEXT` that makes a repeated call the same purchase")
	fl.StringVar(&f.maxPrice, "max-price", "", "the most that it may cost, in `USD`")
	fl.StringVar(&f.purpose, "purpose", "", "`TEXT` that says what it is for, to people")
	fl.BoolVar(&f.ask, "ask", false, "ask a person even where the policy allows it")
	lengthVar(fl, &f.wait, "wait", "", "wait so long for a person's approval: `SECONDS`, or such as 5m")
	return c
}

// run sends the request and prints what comes.
func (f *fetch) run(c *cobra.Command, rawURL string) error {
	if f.silent {
		f.quiet = true
	}
	if f.json && f.include {
		return usage(c, errors.New("--json has the headers: leave -i out"))
	}
	f.include = f.include || f.request.head && !f.json
	opts, err := f.options(c)
	if err != nil {
		return err
	}
	ctx, cancel, err := f.context(c)
	if err != nil {
		return err
	}
	defer cancel()
	file, err := f.load()
	if err != nil {
		return err
	}
	req, err := f.request.build(ctx, rawURL, f.in, own{file})
	if err != nil {
		return usage(c, err)
	}
	out, err := f.open(own{file})
	if err != nil {
		return err
	}
	defer out.close()
	client, err := f.client(ctx, file)
	if err != nil {
		return err
	}
	defer client.Close()
	if f.wait > 0 {
		f.note("Should a person have to approve this, it waits for %s.", f.wait)
	}
	resp, err := client.Fetch(ctx, req, opts...)
	if err != nil {
		return f.failed(err, req, client)
	}
	defer resp.Body.Close()
	return f.answered(resp, out)
}

// options are those of the call.
func (f *fetch) options(c *cobra.Command) ([]canopy.Option, error) {
	opts, err := priceOption(c, f.maxPrice)
	if err != nil {
		return nil, err
	}
	if !f.follow {
		opts = append(opts, canopy.WithoutRedirects())
	}
	if err := keyFlag(c, f.key); err != nil {
		return nil, err
	}
	if c.Flags().Changed("key") {
		opts = append(opts, canopy.WithKey(f.key))
	}
	if f.purpose != "" {
		opts = append(opts, canopy.WithPurpose(f.purpose))
	}
	if f.ask {
		opts = append(opts, canopy.WithApproval())
	}
	return append(opts, canopy.WithWait(f.wait)), nil
}

// context ends with --max-time.
func (f *fetch) context(c *cobra.Command) (context.Context, context.CancelFunc, error) {
	if !c.Flags().Changed("max-time") {
		ctx, cancel := context.WithCancel(c.Context())
		return ctx, cancel, nil
	}
	if f.maxTime == 0 {
		return nil, nil, usage(c, errors.New("--max-time is more than 0"))
	}
	ctx, cancel := context.WithTimeout(c.Context(), f.maxTime)
	return ctx, cancel, nil
}

// answered prints the seller's answer.
func (f *fetch) answered(resp *http.Response, out *output) error {
	r, paid := canopy.PaymentOf(resp)
	f.code = answerCode(resp.StatusCode, r, paid, f.fail)
	var err error
	switch {
	case f.fail && !paid && resp.StatusCode >= 400 && !f.json:
		if f.include {
			out.head(resp)
		}
		f.note("canopy: the answer is %d", resp.StatusCode)
	case f.json && f.output == "":
		var s shape.Response
		if s, err = shape.FetchResponse(resp); err == nil {
			return f.printJSON(s)
		}
	case f.json:
		var n int64
		if n, err = out.copy(resp.Body); err == nil {
			return f.printJSON(shape.FetchSaved(resp, n))
		}
	default:
		if f.include {
			out.head(resp)
		}
		_, err = out.copy(resp.Body)
	}
	if err == nil {
		err = out.sync()
	}
	if err != nil {
		return f.brokeOff(err, r, paid)
	}
	f.said(resp, out, r, paid)
	return nil
}

// answerCode is the exit code of an answer.
func answerCode(status int, r canopy.Result, paid, fail bool) int {
	good := status >= 200 && status < 400
	switch {
	case !paid && status == http.StatusPaymentRequired, !paid && fail && status >= 400:
		return codeFailed
	case !paid || good:
		return codeDone
	case r.State.Paid():
		return codePaid
	}
	return codeInDoubt
}

// brokeOff reports an answer that did not arrive whole.
func (f *fetch) brokeOff(err error, r canopy.Result, paid bool) error {
	err = fmt.Errorf("the answer broke off: %w", err)
	switch {
	case !paid:
		return err
	case r.State.Paid():
		err = &canopy.PaidError{Result: r, Err: err}
	default:
		err = &canopy.InDoubtError{Result: r, Phase: canopy.SentUnknown, Err: err}
	}
	if f.json {
		f.code = codeOfError(err)
		return f.printJSON(shape.FetchError(err, shape.FetchCall{}))
	}
	return exit{codeOfError(err), err}
}

// said tells on standard error what it cost.
func (f *fetch) said(resp *http.Response, out *output, r canopy.Result, paid bool) {
	out.endLine()
	if !paid {
		switch name := f.request.carries(); {
		case resp.StatusCode == http.StatusPaymentRequired && name != "":
			f.note("The request carries a payment of yours, as -H '%s: …': canopy pays nothing beside it. Leave the header out to have canopy pay.", name)
		case resp.StatusCode == http.StatusPaymentRequired:
			f.note("The seller asks for payment in a way that canopy does not know. Nothing was paid.")
		}
		return
	}
	words := "paid"
	if !r.State.Paid() {
		words = "in doubt: the seller gave no receipt for"
	}
	f.note("%s %s to %s on %s · payment %s", words, withFee(r.Amount, r.Fee), recipients(r.Recipients), r.Chain.Name(), r.PaymentID)
	if r.TxHash != "" {
		f.note("tx %s (%s)", show(r.TxHash, 100), r.Settlement)
	}
	if r.Warning != "" {
		f.note("warning: %s", show(r.Warning, 500))
	}
	for _, reason := range r.Reasons {
		if reason.Shadow {
			f.note("%s", show(reason.Said(), 500))
		}
	}
	if f.code != codeDone {
		f.note("The seller answered %d: canopy ledger show %s tells what is known.", resp.StatusCode, r.PaymentID)
	}
}

// failed reports a Fetch that has no answer.
func (f *fetch) failed(err error, req *http.Request, client *config.Client) error {
	err = f.named(err)
	f.code = codeOfError(err)
	if f.json {
		return f.printJSON(shape.FetchError(err, shape.FetchCall{
			Host: show(req.URL.Hostname(), 300), Waited: f.wait > 0 && req.Context().Err() == nil, Chat: client.File.Policy.ChatApproval(f.agentName()),
		}))
	}
	f.explain(err, req.URL.String())
	return exit{code: f.code}
}

// named is err with the flag that ended the call, and without the words of
// net/http around what is this program's own.
func (f *fetch) named(err error) error {
	var sent *url.Error
	if errors.As(err, &sent) && (errors.Is(err, ledger.ErrMissing) || errors.Is(err, ledger.ErrReadOnly)) {
		err = sent.Err
	}
	if f.maxTime > 0 && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: --max-time %s is over", err, f.maxTime)
	}
	return err
}

// codeOfError is the exit code of an error of Fetch.
func codeOfError(err error) int {
	var pending *canopy.PendingError
	var denied *canopy.DeniedError
	var doubt *canopy.InDoubtError
	var paid *canopy.PaidError
	switch {
	case errors.As(err, &pending):
		return codePending
	case errors.As(err, &denied):
		return codeDenied
	case errors.As(err, &doubt):
		return codeInDoubt
	case errors.As(err, &paid):
		return codePaid
	}
	return codeFailed
}

// explain tells an error of Fetch, and what to do next.
func (f *fetch) explain(err error, rawURL string) {
	var pending *canopy.PendingError
	var denied *canopy.DeniedError
	var doubt *canopy.InDoubtError
	var paid *canopy.PaidError
	tell := func(format string, args ...any) { fmt.Fprintf(f.err, format+"\n", args...) }
	switch {
	case errors.As(err, &pending):
		r := pending.Result
		tell("waits for approval: %s", show(r.Reason, 500))
		tell("price     %s, to %s", withFee(r.Amount, r.Fee), recipients(r.Recipients))
		tell("approval  %s, until %s", r.ApprovalID, moment(r.ExpiresAt))
		f.and(r.Reasons, r.Reason)
		f.note("A person approves it with: canopy approvals approve %s\nAfter that, the same fetch again pays.", r.ApprovalID)
	case errors.As(err, &denied):
		tell("denied: %s", show(f.reasonOf(denied), 2000))
		if r := denied.Result; r.Fee > 0 {
			tell("cost      %s", costOf(r))
		}
		f.and(slices.DeleteFunc(slices.Clone(denied.Result.Reasons), func(r canopy.Reason) bool {
			return r.Code == canopy.CodeChosen // why this offer and not another, of which none is paid
		}), denied.Result.Reason)
		f.feeHint(denied.Result)
		f.hint(denied.Result.Reasons, rawURL)
	case errors.As(err, &doubt):
		tell("%s", show(err.Error(), 2000))
		f.sellerSaid(doubt.Message)
		f.note("%s", f.doubtful(doubt, "fetch again sends"))
	case errors.As(err, &paid):
		tell("%s", show(err.Error(), 2000))
		f.sellerSaid(paid.Message)
		f.note("%s See canopy ledger show %s.", f.afterPaid(paid), paid.Result.PaymentID)
	default:
		tell("canopy: %s", show(strings.TrimPrefix(err.Error(), "canopy: "), 2000))
	}
}

// afterPaid tells when the same thing can be bought again.
func (f *fetch) afterPaid(err *canopy.PaidError) string {
	switch {
	case err.Delivered && f.key != "":
		return "An earlier call with this --key got the answer. Another --key makes a new purchase."
	case err.Delivered:
		return "Another call got the answer. An equal fetch is a new purchase."
	case !err.SafeAfter.After(f.now()) && f.key != "":
		return "This --key stays with this purchase. Another --key makes a new one."
	case !err.SafeAfter.After(f.now()):
		return "An equal fetch is a new purchase."
	case f.key != "":
		return "This --key stays with this purchase. Pay by no other means before " + moment(err.SafeAfter) + "."
	}
	return "An equal fetch is a new purchase after " + moment(err.SafeAfter) + "."
}

// and tells the other reasons.
func (f *fetch) and(reasons []canopy.Reason, told string) {
	for _, r := range reasons {
		if r.Text != told {
			fmt.Fprintf(f.err, "and: %s (%s)\n", plaintext.Words(r.Said(), 2000), r.Status)
		}
	}
}

func (f *fetch) reasonOf(err *canopy.DeniedError) string {
	if err.Err != nil {
		return err.Result.Reason + ": " + err.Err.Error()
	}
	return err.Result.Reason
}

func (f *fetch) sellerSaid(s string) {
	if s != "" {
		fmt.Fprintf(f.err, "the seller says: %s\n", show(s, 500))
	}
}
