package canopytest

import (
	"crypto/tls"
	"net/http/httptest"
	"time"
)

// NewServer serves s over plain HTTP on a loopback port until the test ends.
// Its client follows redirects and knows nothing of payments.
func NewServer(tb TB, s *Seller) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ReadHeaderTimeout = time.Minute
	server.Start()
	tb.Cleanup(func() { s.Close(); server.Close() })
	return server
}

// NewTLSServer is NewServer with TLS; the server's Client trusts its
// certificate.
func NewTLSServer(tb TB, s *Seller) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ReadHeaderTimeout = time.Minute
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	tb.Cleanup(func() { s.Close(); server.Close() })
	return server
}

// Start serves s as NewServer does and returns its URL, without a slash at the
// end.
func (s *Seller) Start(tb TB) string {
	tb.Helper()
	return NewServer(tb, s).URL
}
