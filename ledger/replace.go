package ledger

// replace ends what was approved on other terms and has e, which is about to
// be stored, in its place: nothing pays it as well, whoever names it. That is
// the payment that the key of this call stood for, and transfers equal to e,
// unless both have keys and they differ. Going back to the first terms is a new
// decision too.
//
// An approved fetch under no key or another one stays: only a further call
// carries it out, and that is a purchase of its own.
func (s *reserving) replace(e *Entry) error {
	if s.holder != nil && e.Key == s.r.Key {
		if err := s.end(s.holder, e); err != nil {
			return err
		}
	}
	for _, o := range s.outdated {
		if s.holder != nil && o.ID == s.holder.ID || apart(o.Key, e.Key) {
			continue
		}
		if err := s.end(o, e); err != nil {
			return err
		}
	}
	return nil
}

// apart reports whether two keys tell equal calls from one another.
func apart(a, b string) bool { return a != "" && b != "" && a != b }

// end takes the approval from o, for e to stand in its place.
func (s *reserving) end(o, e *Entry) error {
	a, err := s.tx.Approval(o.ApprovalID)
	if err != nil {
		return err
	}
	return lapse(s.tx, o, a, ByClient, e.ID, s.now)
}

// share lets the key of a call stand for the payment that answers it, where
// that has another key or none: the call was told what became of it, and must
// not pay when it is made again. What the key stood for before ends.
func (s *reserving) share(e *Entry, why Join) error {
	if s.r.Key == "" || s.r.Key == e.Key || why != JoinGuard && why != JoinEqual {
		return nil
	}
	if s.holder != nil {
		if err := s.end(s.holder, e); err != nil {
			return err
		}
	}
	if err := s.tx.ShareKey(e.Agent, s.r.Key, e.ID); err != nil {
		return err
	}
	return s.saw()
}
