package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/canopy-go/canopy/internal/shape"
	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// watchPause is between two looks at what waits.
const watchPause = 500 * time.Millisecond

func (a *app) approvalsWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Show payments that wait for a person as they come, until ^C",
		Long: `Watch shows what waits, oldest first, then each new request within a second, with
the terms that would be paid and the commands that rule on it; and how each ended.
With --json it prints one object a line: an approval as list prints it, when it
comes and each time that somebody rules on it.`,
		Example: `  canopy approvals watch
  canopy approvals watch --agent trader --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.store()
			if err != nil {
				return err
			}
			defer s.Close()
			if !a.json {
				a.note("Waiting for requests. ^C ends it.")
			}
			w := watch{app: a, s: s, seen: map[payment.ApprovalID]int{}}
			for {
				err := w.look(c.Context())
				if c.Context().Err() != nil {
					return nil
				}
				if err != nil {
					return err
				}
				timer := time.NewTimer(watchPause)
				select {
				case <-c.Context().Done():
				case <-timer.C:
				}
				timer.Stop()
			}
		},
	}
}

// watch is what one has shown: the approvals that wait, by how many have voted.
type watch struct {
	*app
	s    ledger.Store
	seen map[payment.ApprovalID]int
}

// look shows what came since the last.
func (w *watch) look(ctx context.Context) error {
	waits, err := w.s.Approvals().List(ctx, w.agent, true, w.now())
	if err != nil {
		return err
	}
	there := map[payment.ApprovalID]bool{}
	for _, ap := range slices.Backward(waits) {
		there[ap.ID] = true
		n, known := w.seen[ap.ID]
		w.seen[ap.ID] = len(ap.Votes)
		switch {
		case !known:
			err = w.asked(ctx, ap)
		case n != len(ap.Votes):
			err = w.told(ap)
		}
		if err != nil {
			return err
		}
	}
	for id := range w.seen {
		if there[id] {
			continue
		}
		ap, err := w.s.Approvals().Approval(ctx, id, w.now())
		if err != nil {
			return err
		}
		delete(w.seen, id)
		if err := w.told(ap); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) asked(ctx context.Context, ap ledger.Approval) error {
	if w.json {
		return w.line(ap)
	}
	w.printTerms(ctx, w.s, ap)
	w.printf("rule      canopy approvals approve %s\n          canopy approvals deny %s\n\n", ap.ID, ap.ID)
	return nil
}

// told says what became of one that was shown.
func (w *watch) told(ap ledger.Approval) error {
	if w.json {
		return w.line(ap)
	}
	text := w.colour(mood(ap.Status.String()), ap.Status.String())
	switch {
	case ap.Status == ledger.ApprovalPending:
		v := ap.Votes[len(ap.Votes)-1]
		text = fmt.Sprintf("yes by %s. %s", show(v.By, 100), stillNeeded(ap))
	case ap.By != "":
		text += " by " + show(ap.By, 100)
	}
	w.printf("%s  %s, %s\n\n", ap.ID, ap.Cost, text)
	return nil
}

func (w *watch) line(ap ledger.Approval) error {
	e := json.NewEncoder(w.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(shape.ApprovalItemOf(ap)); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}
