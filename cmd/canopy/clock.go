package main

import "time"

// now is the program's clock.
func (a *app) now() time.Time { return time.Now() }
