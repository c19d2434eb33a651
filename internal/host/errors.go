package host

import "errors"

var (
	errEmpty    = errors.New("empty")
	errLong     = errors.New("name or label too long")
	errUTF8     = errors.New("not UTF-8")
	errSpace    = errors.New("space or control character")
	errUserinfo = errors.New("user information before the host")
	errPercent  = errors.New("percent-encoding or IPv6 zone")
	errPath     = errors.New("more than a host")
	errBracket  = errors.New("brackets belong around an IPv6 address")
	errPort     = errors.New("port is not a number from 1 to 65535")
	errIPv6     = errors.New("not an IPv6 address")
	errName     = errors.New("not a valid domain name")
	errLabel    = errors.New("empty label")
	errNumeric  = errors.New("numeric, but not a canonical IPv4 address")
)
