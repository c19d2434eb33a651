package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/canopy-go/canopy/mpp"
	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// Env is the environment variable that names the configuration file.
const Env = "CANOPY_CONFIG"

// Name is the file that is read where no other is named.
const Name = "canopy.toml"

// tables are the top-level keys that are not of the policy.
var tables = []string{"treasury", "ledger", "chain", "asset", "network", "mpp", "webhook"}

// maxFile bounds a configuration file.
const maxFile = 1 << 20

// File is a configuration file that was read and found right. Its paths are
// absolute, or relative to the working directory as its own path was.
type File struct {
	Path     string
	Treasury Treasury
	Ledger   Ledger
	Chains   []Chain
	Assets   payment.Assets // the known dollars, and those of [[asset]]
	Network  Network
	MPP      MPP
	Webhooks []Webhook
	Policy   *policy.Policy

	// Warnings tell what is unsafe and still works, such as a file that others
	// can write; Notes what is read and has no effect in this version.
	Warnings []string
	Notes    []string

	// Ask asks a person for a secret, such as the password of a keystore that
	// the file names no other source for. Nil means that nobody can be asked.
	Ask func(ctx context.Context, what string) (string, error)

	Now    func() time.Time // the clock; time.Now where nil
	Logger *slog.Logger     // nothing is logged where nil

	lines map[string]int
}

// Line is where key stands in the file, such as policy.default or
// chain[0].rpc[1]; 0 where it does not.
func (f *File) Line(key string) int { return f.lines[key] }

// Treasury says where the key is. All empty means that there is none: then
// everything but paying works.
type Treasury struct {
	KeyEnv      string // environment variable with the key in hex
	Keystore    string // path of a keystore file
	PasswordEnv string // environment variable with its password
	PasswordCmd []string
}

// Ledger says where the ledger is.
type Ledger struct {
	Path       string // of the SQLite file; canopy.db beside the configuration by default
	StateDir   string // what remembers ledgers; $XDG_STATE_HOME/canopy by default
	ForeignUse string // freeze or warn; freeze where empty
}

// Chain is one [[chain]].
type Chain struct {
	ID                    payment.ChainID
	RPC                   []string
	RPCEnv                []string // environment variables with further RPC URLs
	Facilitator           string
	FacilitatorHeadersEnv string
	MaxGas, GasPerDay     string // of the chain's own coin, for transactions of our own; empty where there are none
	Tempo                 bool   // a Tempo network
}

// MPP is how the Payment scheme is paid by.
type MPP struct {
	Fees     mpp.Fees // of what is absent the zero
	ClientID string
	NoProofs bool
	// ProofRealms are those of mpp.Config.
	ProofRealms []string
	Envelope    mpp.Envelope
	Lanes       int // 0 where absent
}

// Network is what the binary may dial.
type Network struct {
	AllowPrivate []netip.Prefix
	Proxy        *url.URL
}

// Find returns the path of the file to read: path itself, else what the
// environment variable CANOPY_CONFIG names, else ./canopy.toml. Directories
// above are not searched.
func Find(path string) string {
	if path == "" {
		path = os.Getenv(Env)
	}
	if path == "" {
		path = Name
	}
	return path
}

// Load reads the file at path, or where path is empty the one that Find
// returns. It reads no other file, no secret, and touches no network. The error
// is an *Error with everything that is wrong, or wraps fs.ErrNotExist.
func Load(path string) (*File, error) {
	path = Find(path)
	b, info, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("config: there is no %s: make one with canopy init, or name one with --config or %s: %w", path, Env, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	f, err := Parse(path, b)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && posix {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s has mode %04o: others can change the policy in it: chmod go-w %s", path, mode, path))
	}
	return f, nil
}

// Parse reads the bytes of a configuration file that is, or will be, at path.
func Parse(path string, b []byte) (*File, error) {
	d := readDocument(b)
	f := &File{Path: path, lines: d.lines}
	if d.values != nil {
		dir := filepath.Dir(path)
		f.treasury(d, dir)
		f.ledger(d, dir)
		f.chainTables(d)
		f.assets(d)
		f.mppTable(d)
		f.network(d)
		f.webhookTables(d)
		p, err := policy.Parse(path, b, tables...)
		f.Policy = p
		d.problems.addPolicy(err)
		if err == nil && len(p.Agents()) == 0 {
			d.problems.add(0, "policy", "is missing: without a [policy.default] nothing may be paid")
		}
	}
	if err := d.problems.in(path); err != nil {
		return nil, err
	}
	return f, nil
}

// read returns the bytes of a regular file, and what it is.
func read(path string) ([]byte, fs.FileInfo, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, info, errors.Join(err, notRegular(info)) // a FIFO would block
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return b, info, err
}

func notRegular(info fs.FileInfo) error {
	if info == nil || info.Mode().IsRegular() {
		return nil
	}
	return errors.New("it is not a regular file")
}

// in is path as it is meant in a file in dir.
func in(dir, path string) string {
	if rest, ok := cutHome(path); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func cutHome(path string) (string, bool) {
	if len(path) > 1 && path[0] == '~' && os.IsPathSeparator(path[1]) {
		return path[2:], true
	}
	return "", false
}
