package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// length is a flag with a length of time, such as 5m or, in seconds, 30 or 1.5.
type length struct{ d *time.Duration }

func lengthVar(fl *pflag.FlagSet, d *time.Duration, name, short, usage string) {
	fl.VarP(length{d}, name, short, usage)
}

func (l length) String() string {
	if l.d == nil || *l.d == 0 {
		return ""
	}
	return l.d.String()
}

func (l length) Type() string { return "time" }

// Set reads s.
func (l length) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a length of time such as 5m, 30 or 1.5", show(s, 40))
	}
	*l.d = d
	return nil
}
