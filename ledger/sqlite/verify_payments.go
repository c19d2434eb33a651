package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/canopy-go/canopy/ledger"
	"github.com/canopy-go/canopy/payment"
)

// found is a payment with all that the ledger keeps of it elsewhere.
type found struct {
	paymentRow    // e is nil where it could not be read
	columns       derived
	payee, others []byte
	gas           gasRow
	events        []ledger.Event
	problems      []string // of reading it
}

func (f *found) problem(format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

// verifyPayments reads every payment, and judges those of one page while it
// reads the next.
func (t *tx) verifyPayments(ctx context.Context, v *ledger.Verification) error {
	ended, err := t.endedSlots()
	if err != nil {
		v.Problem("the slots: %v", err)
	}
	pages, done := make(chan []found, 1), make(chan struct{})
	sums, places := map[spendingKey]spent{}, newPlaceSum()
	go func() {
		defer close(done)
		for page := range pages {
			for i := range page {
				page[i].judge(v, ended)
				if e := page[i].e; e != nil {
					sums[spendingKeyOf(e)] = sums[spendingKeyOf(e)].plus(spentOf(e))
					places.payment(page[i].n, e)
				}
			}
		}
	}()
	splits, works, err := t.findPayments(ctx, pages)
	close(pages)
	<-done
	if err != nil {
		return err
	}
	if err := t.verifySpending(v, sums); err != nil {
		return err
	}
	if err := t.verifyPlaces(v, places); err != nil {
		return err
	}
	if err := t.c.query(`SELECT g.n FROM gas g LEFT JOIN payments p ON p.n = g.n WHERE p.n IS NULL LIMIT 1`, nil, func([]driver.Value) error {
		v.Problem("gas is counted for a payment that is not there")
		return nil
	}); err != nil {
		return err
	}
	var all int64
	_, err = t.c.first(`SELECT count(*) FROM splits`, nil, &all)
	if err == nil && all != splits {
		v.Problem("payments are found by %d further payees, and have %d", all, splits)
	}
	if err == nil {
		_, err = t.c.first(`SELECT count(*) FROM works`, nil, &all)
	}
	if err == nil && all != works {
		v.Problem("payments are found by %d runs and budgets, and have %d", all, works)
	}
	return err
}

// judge holds what was found against the payment itself.
func (f *found) judge(v *ledger.Verification, ended slotSet) {
	for _, p := range f.problems {
		v.Problem("%s", p)
	}
	if f.e == nil {
		return
	}
	if first, rest := payees(f.e); !bytes.Equal(first, f.payee) || !bytes.Equal(rest, f.others) {
		v.Problem("payment %s: the payees beside it are not those of its terms", f.e.ID)
	}
	if derive(f.e) != f.columns {
		v.Problem("payment %s: what it is found by does not follow from its record", f.e.ID)
	}
	if err := f.gas.verify(f.e); err != nil {
		v.Problem("payment %s: its gas: %v", f.e.ID, err)
	}
	if !f.e.Slot.IsZero() && !f.e.HoldsSlot() && !ended.has(slotKey(f.e.SlotKey())) {
		v.Problem("payment %s: its slot is not remembered", f.e.ID)
	}
	v.Payment(f.e, f.events)
}

// findPayments gives all payments to pages, and tells how many further payees
// they have, and how many runs and budgets.
func (t *tx) findPayments(ctx context.Context, pages chan<- []found) (splits, works int64, err error) {
	for last := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return splits, works, err
		}
		page, err := t.findPage(last)
		if err != nil || len(page) == 0 {
			return splits, works, err
		}
		last = page[len(page)-1].n
		t.findGas(page)
		t.findEvents(page)
		for i := range page {
			f := &page[i]
			if f.e == nil {
				continue
			}
			n, err := t.verifySplits(&f.paymentRow)
			if splits += n; err != nil {
				f.problem("payment %s: it is not found by all of its payees: %v", f.e.ID, err)
			}
			n, err = t.verifyWorks(&f.paymentRow)
			if works += n; err != nil {
				f.problem("payment %s: it is not found by its run and its budgets: %v", f.e.ID, err)
			}
		}
		pages <- page
	}
}

// findPage reads the payments after the one numbered last.
func (t *tx) findPage(last int64) ([]found, error) {
	page := make([]found, 0, pageRows)
	err := t.c.query(`SELECT `+entryColumns+`, held, slot, owner, answers, transfer, counts, payee, others, run FROM payments WHERE n > ? ORDER BY n LIMIT ?`,
		[]driver.Value{last, int64(pageRows)}, func(row []driver.Value) error {
			page = append(page, found{})
			f := &page[len(page)-1]
			if err := scan(row[:1], &f.n); err != nil {
				return err // it is what rows are told apart by
			}
			_, e, err := entryOf(row[:11])
			if err != nil {
				f.problem("%v", err)
				return nil
			}
			f.e = e
			var slot []byte
			if err := scan([]driver.Value{row[12], row[17], row[18]}, &slot, &f.payee, &f.others); err != nil {
				f.problem("payment %s: %v", e.ID, err)
			}
			f.columns = derived{held: row[11], owner: row[13], answers: row[14], transfer: row[15], counts: row[16], shared: row[6], run: row[19]}
			if slot != nil {
				f.columns.slot = string(slot)
			}
			return nil
		})
	return page, err
}

// findEvents reads the events of a page.
func (t *tx) findEvents(page []found) {
	rows := make([]*paymentRow, 0, len(page))
	for i := range page {
		if page[i].e != nil {
			rows = append(rows, &page[i].paymentRow)
		}
	}
	list, err := t.eventsOf(rows, func(*ledger.Entry) bool { return true })
	for i, at := 0, 0; i < len(page); i++ {
		f := &page[i]
		if f.e == nil {
			continue
		}
		if f.events = list[at]; err != nil { // of some payment: each is read by itself, so that it is told which
			var err error
			if f.events, err = t.events(&f.paymentRow); err != nil {
				f.problem("payment %s: its events: %v", f.e.ID, err)
			}
		}
		at++
	}
}

// verifySplits looks for a payment under each of its further payees, and tells
// how many those are.
func (t *tx) verifySplits(r *paymentRow) (n int64, err error) {
	for i, p := range r.e.Terms.Recipients {
		if slices.ContainsFunc(r.e.Terms.Recipients[:i], func(q payment.Recipient) bool { return q.Address == p.Address }) || i == 0 {
			continue
		}
		n++
		found, e := t.c.first(`SELECT n FROM splits WHERE payee = ? AND n = ?`, []driver.Value{p.Address[:], r.n}, new(int64))
		if e == nil && !found {
			e = fmt.Errorf("not by %s", p.Address)
		}
		err = errors.Join(err, e)
	}
	return n, err
}

// slotSet is the keys of slots, in order.
type slotSet [][16]byte

// endedSlots reads all that is remembered of slots that ended: 16 bytes of each,
// which costs less than to look for each.
func (t *tx) endedSlots() (all slotSet, err error) {
	err = t.c.query(`SELECT slot FROM slots`, nil, func(row []driver.Value) error {
		if b, ok := row[0].([]byte); ok && len(b) == len([16]byte{}) { // no other is a slot's
			all = append(all, [16]byte(b))
		}
		return nil
	})
	slices.SortFunc(all, compareSlots)
	return all, err
}

func compareSlots(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }

func (s slotSet) has(key []byte) bool {
	_, ok := slices.BinarySearchFunc(s, [16]byte(key), compareSlots)
	return ok
}
