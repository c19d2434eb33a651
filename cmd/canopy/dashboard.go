package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/canopy-go/canopy"
	"github.com/canopy-go/canopy/approvals"
	"github.com/canopy-go/canopy/config"
	"github.com/canopy-go/canopy/dashboard"
	"github.com/canopy-go/canopy/ledger"
)

// dashboardFlags are where the page is served, and how.
type dashboardFlags struct {
	listen    string
	remote    bool
	names     []string
	cert, key string
	open      bool
	every     time.Duration
}

func (a *app) dashboardCommand() *cobra.Command {
	d := dashboardFlags{every: 30 * time.Second}
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve the page to rule, look and stop from, on this machine",
		Long: `Dashboard serves a page for people: what waits for approval, what was spent, the
ledger, the policy, and the switch that stops everything. Log in with an
approver's credential: canopy approvers add NAME makes one. It holds no key and
cannot pay. While it runs, it also asks the chains what became of payments, as
canopy reconcile does, delivers what webhooks have to tell,
and takes at /answers what people answer to them.

It listens on this machine alone. To be reached from elsewhere it needs --remote,
a certificate, and --name for each name that it is opened by.`,
		Example: `  canopy dashboard
  canopy dashboard --open --listen 127.0.0.1:9000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := d.check(); err != nil {
				return usage(c, err)
			}
			err := a.dashboard(c.Context(), d)
			if c.Context().Err() != nil {
				return nil // told to end
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&d.listen, "listen", "127.0.0.1:8402", "`ADDRESS` to listen on; port 0 takes a free one")
	f.BoolVar(&d.remote, "remote", false, "let other machines reach it: needs --tls-cert and --tls-key")
	f.StringArrayVar(&d.names, "name", nil, "`HOST` that the page is opened by, beside the address; again for more")
	f.StringVar(&d.cert, "tls-cert", "", "certificate `FILE` (PEM)")
	f.StringVar(&d.key, "tls-key", "", "key `FILE` (PEM)")
	f.BoolVar(&d.open, "open", false, "open it in the browser")
	lengthVar(f, &d.every, "every", "", "`SECONDS`, or such as 5m, between rounds of asking the chains")
	return c
}

func (d dashboardFlags) check() error {
	_, _, err := net.SplitHostPort(d.listen)
	switch {
	case err != nil:
		return fmt.Errorf("--listen %s: it is an address such as 127.0.0.1:8402", show(d.listen, 100))
	case (d.cert == "") != (d.key == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case dashboard.Loopback(d.listen) && d.remote:
		return errors.New("--remote: --listen is an address of this machine alone")
	case !dashboard.Loopback(d.listen) && !d.remote:
		return fmt.Errorf("--listen %s: other machines reach that: say --remote where you mean it", show(d.listen, 100))
	case d.remote && d.cert == "":
		return errors.New("--remote needs --tls-cert and --tls-key")
	case d.every < time.Second:
		return errors.New("--every is at least 1s")
	}
	return nil
}

// dashboard serves the page until ctx ends.
func (a *app) dashboard(ctx context.Context, d dashboardFlags) error {
	file, err := a.load()
	if err != nil {
		return err
	}
	var cert *tls.Certificate
	if d.cert != "" {
		pair, err := tls.LoadX509KeyPair(d.cert, d.key)
		if err != nil {
			return exit{codeUsage, fmt.Errorf("--tls-cert: %w", err)}
		}
		cert = &pair
	}
	v, err := a.view(ctx, file)
	if err != nil {
		return err
	}
	defer v.Close()
	l, err := net.Listen("tcp", d.listen)
	if err != nil {
		return exit{codeUsage, fmt.Errorf("--listen: %w", err)}
	}
	defer l.Close()
	a.asks = askable(file)
	var answers http.Handler
	if len(file.Webhooks) > 0 {
		answers = approvals.NewAnswers(approvals.NewDesk(v.Store, "webhook", file.Now))
	}
	page, err := dashboard.New(dashboard.Config{
		Answers: answers, Store: v.Store, Policy: file.Policy, Hosts: dashboard.HostsOf(l.Addr(), d.names...), TLS: cert != nil,
		Asks: a.asks, Command: a.command, Now: file.Now, Logger: file.Logger,
	})
	if err != nil {
		return err
	}
	if err := a.announce(ctx, v.Store, l, d); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	defer a.deliverBeside(gctx, file, v.Store)()
	g.Go(func() error { return dashboard.Serve(gctx, l, page, cert) })
	if len(v.Chains()) > 0 {
		g.Go(func() error { return a.keepReconciling(gctx, v, d.every) })
	}
	return g.Wait()
}

// announce tells where the page is, and what is still needed to get in.
func (a *app) announce(ctx context.Context, s ledger.Store, l net.Listener, d dashboardFlags) error {
	scheme := "http"
	if d.cert != "" {
		scheme = "https"
	}
	addr := l.Addr().String()
	if len(d.names) > 0 {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return err
		}
		addr = net.JoinHostPort(d.names[0], port)
	}
	url := scheme + "://" + addr + "/"
	if a.json {
		if err := a.printJSON(struct {
			URL string `json:"url"`
		}{url}); err != nil {
			return err
		}
	} else {
		a.printf("The page is at %s\n", url)
	}
	people, err := approvals.NewRegister(s, a.now)
	if err != nil {
		return err
	}
	all, err := people.List(ctx)
	if err != nil {
		return err
	}
	nobody := true
	for _, p := range all {
		nobody = nobody && !p.RevokedAt.IsZero()
	}
	if nobody {
		a.note("Nobody may log in yet. In another terminal: %s", a.command("approvers add NAME"))
	}
	a.note("End it with Ctrl-C.")
	if d.open {
		a.browse(url)
	}
	return nil
}

// browse opens url, which holds no secret, in the person's browser.
func (a *app) browse(url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		a.note("It could not be opened: %v", err)
		return
	}
	go c.Wait() // it lives as long as it likes
}

// keepReconciling asks the chains until ctx ends. What fails is told and tried
// again: the page goes on.
func (a *app) keepReconciling(ctx context.Context, v *config.View, every time.Duration) error {
	err := v.ReconcileEvery(ctx, every, func(r canopy.Reconciliation, err error) {
		if err != nil {
			a.note("problem: %s", show(err.Error(), 500))
		}
		for _, p := range r.Problems {
			a.note("problem: %s", show(p.Error(), 500))
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
