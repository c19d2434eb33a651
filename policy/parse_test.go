package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/canopy-go/canopy/payment"
	"github.com/canopy-go/canopy/policy"
)

// TestBadDocuments is attack 83: what a person may have meant is never
// guessed. Each document is one fault in a good one; want is what the error
// says, with the line.
func TestBadDocuments(t *testing.T) {
	t.Parallel()
	good := map[string]string{"max_payment": `"$10"`, "caps": `["$20 / 24h"]`, "allow": `["host:feed.example"]`}
	with := func(key, value string) string {
		b := strings.Builder{}
		b.WriteString("[policy.default]\n") // line 1
		fmt.Fprintf(&b, "%s = %s\n", key, value)
		for _, k := range []string{"max_payment", "caps", "allow"} {
			if k != key {
				fmt.Fprintf(&b, "%s = %s\n", k, good[k])
			}
		}
		return b.String()
	}
	if _, err := policy.Parse("good.toml", []byte(with("approve_above", `"$5"`))); err != nil {
		t.Fatal(err)
	}
	const addr = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
	for name, tt := range map[string]struct{ doc, want string }{
		// Amounts need a unit.
		"amount as integer":        {with("max_payment", `10`), `bad.toml:2: policy.default.max_payment: 10 has no unit: write "$10"`},
		"amount as float":          {with("max_payment", `0.5`), `:2: policy.default.max_payment: 0.5 has no unit`},
		"amount as NaN":            {with("max_payment", `nan`), `:2: policy.default.max_payment:`},
		"amount without $":         {with("max_payment", `"10"`), `"10" has no unit: write "$10"`},
		"amount as a count":        {with("max_payment", `"200 payments"`), `"200 payments" counts payments`},
		"amount as a cap":          {with("max_payment", `"$10 / 24h"`), `is a cap`},
		"amount in cents":          {with("max_payment", `"10 cents"`), `is not an amount`},
		"amount in euros":          {with("max_payment", `"€10"`), `is not an amount`},
		"amount in base units":     {with("max_payment", `"10000000 atoms"`), `is not an amount`},
		"amount, negative":         {with("max_payment", `"$-1"`), `is not an amount`},
		"amount, negative outside": {with("max_payment", `"-$1"`), `is not an amount`},
		"amount, exponent":         {with("max_payment", `"$1e3"`), `is not an amount`},
		"amount, separators":       {with("max_payment", `"$1,000"`), `is not an amount`},
		"amount, underscores":      {with("max_payment", `"$1_000"`), `is not an amount`},
		"amount, spaces":           {with("max_payment", `"$ 10"`), `is not an amount`},
		"amount, leading zero":     {with("max_payment", `"$010"`), `is not an amount`},
		"amount, too fine":         {with("max_payment", `"$0.0000001"`), `at most six decimals`},
		"amount, too large":        {with("max_payment", `"$9999999999999"`), `is not an amount`},
		"amount, other digits":     {with("max_payment", `"$５"`), `is not an amount`},
		"amount, empty":            {with("max_payment", `""`), `is empty`},
		"amount, two dollars":      {with("max_payment", `"$$10"`), `is not an amount`},
		"amount as list":           {with("max_payment", `["$10"]`), `must be text in quotes, not a list`},
		"amount as boolean":        {with("max_payment", `true`), `must be text in quotes, not true or false`},
		"threshold without $":      {with("approve_above", `"5"`), `:2: policy.default.approve_above: "5" has no unit`},
		"threshold at the maximum": {with("approve_above", `"$10"`), `$10 is not below max_payment $10: nobody would ever be asked`},
		"threshold, no maximum":    {"[policy.default]\ncaps=[\"none\"]\napprove_above = \"$5\"", `max_payment, which is $1 where it is not given`},

		// Caps.
		"cap as text":            {with("caps", `"$10 / 24h"`), `must be a list of texts, not text: write it in square brackets`},
		"cap of integers":        {with("caps", `[10]`), `one is the number 10`},
		"cap without $":          {with("caps", `["10 / 24h"]`), `write "$10" for dollars or "10 payments" for a count`},
		"cap without window":     {with("caps", `["$10"]`), `"$10" has no window`},
		"cap with half a window": {with("caps", `["$10 /"]`), `has no window after the slash`},
		"cap per":                {with("caps", `["$10 per 24h"]`), `has no window`},
		"cap daily":              {with("caps", `["$10 / daily"]`), `"daily" is not a window`},
		"cap of weeks":           {with("caps", `["$10 / 2w"]`), `"2w" is not a length of time`},
		"cap of two units":       {with("caps", `["$10 / 1h30m"]`), `is not a length of time`},
		"cap of nothing":         {with("caps", `["$10 / 0h"]`), `is an empty window`},
		"cap of ages":            {with("caps", `["$10 / 9999999d"]`), `longer than 3650d`},
		"cap of overflow":        {with("caps", `["$10 / 99999999999999999999h"]`), `is not a length of time`},
		"cap of half an hour":    {with("caps", `["$10 / 0.5h"]`), `is not a length of time`},
		"cap per somebody":       {with("caps", `["$10 / 24h per agent"]`), `not counted per agent`},
		"cap per category":       {with("caps", `["$10 / 24h per category"]`), `needs a service directory`},
		"cap with more":          {with("caps", `["$10 / 24h rolling"]`), `"rolling" cannot stand after the window`},
		"cap, two windows":       {with("caps", `["$10 / 24h / day"]`), `cannot stand after the window`},
		"cap, dollars payments":  {with("caps", `["$10 payments / 1h"]`), `is not an amount`},
		"cap, -1 payments":       {with("caps", `["-1 payments / 1h"]`), `is neither dollars`},
		"cap, a line break":      {with("caps", `["$10 /\n24h"]`), `a character that no cap has`},
		"cap twice":              {with("caps", `["$10 / 24h", "$20 / 1d"]`), `another one has the same window and scope`},
		"none and more":          {with("caps", `["none", "$10 / 24h"]`), `"none" stands alone`},
		"no cap":                 {"[policy.default]\nallow = [\"*\"]", `no cap in dollars bounds this agent's payments`},
		"counts only":            {with("caps", `["10 payments / 24h"]`), `no cap in dollars bounds this agent's payments`},
		"per host only":          {with("caps", `["$10 / 24h per host"]`), `no cap in dollars bounds this agent's payments`},
		"org cap per host":       {"[org]\ncaps = [\"$10 / 24h per host\"]\n", `bad.toml:2: org.caps: "$10 / 24h per host": an org cap counts every payment`},
		"org cap none":           {"[org]\ncaps = [\"none\"]\n", `"none" frees no agent`},

		// Destinations.
		"allow as text":         {with("allow", `"*"`), `must be a list of texts`},
		"host alone":            {with("allow", `["feed.example"]`), `write "host:feed.example"`},
		"address alone":         {with("allow", `["`+addr+`"]`), `write "address:` + addr + `"`},
		"URL":                   {with("allow", `["host:https://feed.example/x"]`), `is a URL: write the host alone`},
		"host with a path":      {with("allow", `["host:feed.example/x"]`), `more than a host`},
		"host with a user":      {with("allow", `["host:good@evil.example"]`), `user information`},
		"host, star inside":     {with("allow", `["host:a*.example"]`), `a star stands only for the whole first label`},
		"host, star alone":      {with("allow", `["host:*"]`), `a star stands only`},
		"host, odd IP":          {with("allow", `["host:0x7f.1"]`), `numeric`},
		"host, port 0":          {with("allow", `["host:feed.example:0"]`), `port`},
		"host, empty":           {with("allow", `["host:"]`), `empty`},
		"wrong checksum":        {with("allow", `["address:0x833589fCD6eDb6E08f4c7C32D4f71b54bdA0291a"]`), `checksum`},
		"one digit flipped":     {with("deny", `["address:0x833589FCD6eDb6E08f4c7C32D4f71b54bdA02913"]`), `policy.default.deny: "address:0x833589FCD6eDb6E08f4c7C32D4f71b54bdA02913": not an address: the mixed-case checksum`},
		"short address":         {with("allow", `["address:0x2096…287C"]`), `not an address`},
		"zero address":          {with("allow", `["address:0x0000000000000000000000000000000000000000"]`), `the zero address is nobody's`},
		"chain by name":         {with("allow", `["chain:base"]`), `name the chain by its number: chain:eip155:8453`},
		"chain of another kind": {with("allow", `["chain:solana:mainnet"]`), `not a chain id`},
		"asset by symbol":       {with("allow", `["asset:USDC"]`), `never by symbol`},
		"asset on no chain":     {with("allow", `["asset:base/`+addr+`"]`), `name the chain by its number`},
		"asset, no address":     {with("allow", `["asset:eip155:8453/USDC"]`), `not an address`},
		"asset, zero":           {with("allow", `["asset:eip155:8453/0x0000000000000000000000000000000000000000"]`), `the zero address is no token`},
		"length of one letter":  {with("max_validity", `"s"`), `write one number and one unit`},
		"a date":                {with("max_validity", `2026-01-01`), `must be text in quotes, not a date or time`},
		"a table for text":      {with("max_validity", `{ s = 60 }`), `must be text in quotes, not a table`},
		"a table under a text":  {"policy = 1\n[policy.a]\n", `bad.toml:2: `},
		"a key under a text":    {"policy.a = 1\npolicy.a.caps = []\n", `bad.toml:2: `},
		"asset on two chains":   {with("allow", `["chain:eip155:1 asset:eip155:8453/`+addr+`"]`), `can never match`},
		"two hosts":             {with("allow", `["host:a.example host:b.example"]`), `two host: parts in one entry cannot both match`},
		"two addresses":         {with("allow", `["address:`+addr+` address:`+addr+`"]`), `two address: parts`},
		"star and more":         {with("allow", `["* chain:eip155:8453"]`), `"*" stands alone`},
		"splits alone":          {with("allow", `["splits:any"]`), `splits:any needs a host:`},
		"splits without host":   {with("allow", `["address:`+addr+` splits:any"]`), `splits:any needs a host:`},
		"splits in deny":        {with("deny", `["host:a.example splits:any"]`), `no meaning in deny`},
		"splits some":           {with("allow", `["host:a.example splits:2"]`), `only splits:any is known`},
		"service":               {with("allow", `["service:feeds"]`), `is not supported by this version yet; remove it`},
		"category":              {with("deny", `["category:news"]`), `is not supported by this version yet; remove it`},
		"unknown kind":          {with("allow", `["hosts:feed.example"]`), `did you mean host:?`},
		"an empty entry":        {with("allow", `[" "]`), `an entry is empty`},
		"an unbound comma":      {with("allow", `["host:a.example,host:b.example"]`), `:2: policy.default.allow:`},

		// Keys and tables.
		"unknown key":        {with("max_paymnet", `"$10"`), `bad.toml:2: policy.default.max_paymnet: unknown key; did you mean max_payment?`},
		"key of another":     {with("whitelist", `["*"]`), `unknown key; the keys here are max_payment, caps,`},
		"key in capitals":    {with("Caps", `["$1 / 24h"]`), `did you mean caps?`},
		"unknown org key":    {"[org]\ncap = [\"$1 / 24h\"]", `bad.toml:2: org.cap: unknown key; did you mean caps?`},
		"unknown table":      {"[polices.default]\n", `bad.toml:1: polices: unknown key; did you mean policy?`},
		"somebody's table":   {"[treasury]\nkey_env = \"X\"\n", `bad.toml:1: treasury: unknown key`},
		"key at the top":     {"max_payment = \"$1\"\n", `stands outside of a table: write it below [policy.default]`},
		"key under policy":   {"[policy]\ncaps = [\"$1 / 24h\"]\n", `bad.toml:2: policy.caps: stands outside of an agent's table`},
		"policy as list":     {"[[policy]]\n", `bad.toml:1: policy: is a table, not a list of tables: write [policy]`},
		"agent as list":      {"\n[[policy.a]]\n", `bad.toml:2: policy.a: is a table, not a list of tables: write [policy.a]`},
		"policy as text":     {"policy = \"none\"\n", `policy: must be a table, not text`},
		"agent as text":      {"[policy]\nana = \"$5\"\n", `a policy is a table: write [policy.ana]`},
		"org as a number":    {"org = 5\n", `org: must be a table, not the number 5`},
		"a name with spaces": {"[policy.\"a host:evil.example\"]\ncaps = [\"none\"]\n", `an agent's name is 1 to 64 letters`},
		"an empty name":      {"[policy.\"\"]\ncaps = [\"none\"]\n", `an agent's name is 1 to 64 letters`},
		"key twice":          {"[policy.a]\ncaps = [\"none\"]\ncaps = [\"none\"]\n", `bad.toml:3: `},
		"table twice":        {"[policy.a]\ncaps = [\"none\"]\n[policy.a]\n", `bad.toml:3: `},
		"dotted over table":  {"policy.a.caps = [\"none\"]\n[policy.a]\n", `bad.toml:2: `},
		"not TOML":           {"[policy.a\n", `bad.toml:1: `},
		"YAML":               {"policy:\n  default:\n", `bad.toml:1: `},
		"JSON":               {`{"policy": {}}`, `bad.toml:1: `},
		"not UTF-8":          {"[policy.a]\nfrom = \"\xff\"\n", `bad.toml:2: `},

		// People.
		"approvers as text":      {with("approvers", `"ana"`), `must be a list of texts, not text: write it in square brackets`},
		"approver twice":         {with("approvers", `["ana", "ben", "Ana"]`), `policy.default.approvers: Ana stands there twice`},
		"approver with spaces":   {with("approvers", `["ana müller"]`), `is not an approver's name`},
		"approver, empty":        {with("approvers", `[""]`), `is not an approver's name`},
		"approver of a number":   {with("approvers", `[1]`), `one is the number 1`},
		"approver like an agent": {with("approvers", `["AGT_0123"]`), `looks like the id of an agent`},
		"approver is the agent":  {"[policy.ana]\ncaps = [\"none\"]\napprovers = [\"ben\", \"Ana\"]\n", `bad.toml:3: policy.ana.approvers: ana is the agent itself`},
		"approver inherited":     {"[policy.x]\ncaps = [\"none\"]\napprovers = [\"ben\"]\n[policy.ben]\nfrom = \"x\"\n", `bad.toml:3: policy.ben.approvers: ben is the agent itself`},
		"quorum alone":           {with("quorum", `1`), `bad.toml:2: policy.default.quorum: counts approvers, and none are named`},
		"quorum of nobody":       {with("quorum", "1\napprovers = []"), `counts approvers, and none are named`},
		"quorum too high":        {with("quorum", "3\napprovers = [\"ana\", \"ben\"]"), `3 is more than the 2 approvers: nothing could ever be approved`},
		"quorum inherited":       {"[policy.x]\ncaps = [\"none\"]\napprovers = [\"ana\", \"ben\"]\nquorum = 2\n[policy.y]\nfrom = \"x\"\napprovers = [\"ana\"]\n", `bad.toml:4: policy.y.quorum: 2 is more than the 1 approvers`},
		"quorum, none":           {with("quorum", "0\napprovers = [\"ana\"]"), `must be 1 to the number of approvers, not 0`},
		"quorum, negative":       {with("quorum", "-1\napprovers = [\"ana\"]"), `must be 1 to the number of approvers`},
		"quorum as text":         {with("quorum", "\"2\"\napprovers = [\"ana\"]"), `must be a whole number, without quotes`},

		// Habits.
		"hours, nothing":         {with("hours", `[]`), `is empty: leave the key out, or write "Mon-Sun"`},
		"hours, empty":           {with("hours", `""`), `policy.default.hours: is empty`},
		"hours, a blank":         {with("hours", `" "`), `names no time`},
		"hours of a number":      {with("hours", `8`), `must be a list of texts, not the number 8`},
		"hours, a full name":     {with("hours", `"Monday 08:00-20:00"`), `"Monday" is neither a day nor a time`},
		"hours, small letters":   {with("hours", `"mon-fri 08:00-20:00"`), `"mon-fri" is neither a day nor a time`},
		"hours, one digit":       {with("hours", `"Mon 8:00-20:00"`), `"8:00-20:00" is not a time of day`},
		"hours, half a day":      {with("hours", `"Mon 8am-8pm"`), `is not a time of day`},
		"hours, 25":              {with("hours", `"Mon 08:00-25:00"`), `is not a time of day`},
		"hours, past 24":         {with("hours", `"Mon 08:00-24:01"`), `is not a time of day`},
		"hours from 24":          {with("hours", `"Mon 24:00-08:00"`), `is not a time of day`},
		"hours, 60 minutes":      {with("hours", `"Mon 08:60-20:00"`), `is not a time of day`},
		"hours, no end":          {with("hours", `"Mon 08:00"`), `is not a time of day`},
		"hours, nothing long":    {with("hours", `"Mon 08:00-08:00"`), `write "00:00-24:00" for the whole`},
		"hours, one day or 8":    {with("hours", `"Mon-Mon 08:00-20:00"`), `is one day or eight`},
		"hours, two times":       {with("hours", `"Mon 08:00-12:00 13:00-17:00"`), `a comma is missing before "13:00-17:00"`},
		"hours, two days":        {with("hours", `"Mon Tue 08:00-12:00"`), `a comma is missing before "Tue"`},
		"hours, two commas":      {with("hours", `"Mon,, Tue 08:00-12:00"`), `a comma without anything between`},
		"hours, a comma first":   {with("hours", `", Mon 08:00-12:00"`), `a comma without anything between`},
		"hours, a comma last":    {with("hours", `"Mon 08:00-12:00,"`), `ends with a comma`},
		"hours, days at the end": {with("hours", `"Mon-Fri 08:00-12:00, Sat"`), `the last days have no times: write them like "Sat 00:00-24:00"`},
		"hours, unknown zone":    {with("hours", `"Mon-Fri 08:00-20:00 Europe/Berlinn"`), `policy.default.hours: "Europe/Berlinn" is not a time zone that this machine knows`},
		"hours, Local":           {with("hours", `"Mon-Fri 08:00-20:00 Local"`), `differs from machine to machine`},
		"hours, an offset":       {with("hours", `"Mon-Fri 08:00-20:00 +02:00"`), `is not a time zone`},
		"hours, zone alone":      {with("hours", `"Europe/Berlin"`), `is neither a day nor a time`},
		"hours, zone first":      {with("hours", `"Europe/Berlin Mon 08:00-20:00"`), `is neither a day nor a time`},
		"hours, a second zone":   {with("hours", `"Mon 08:00-20:00 UTC, Tue 08:00-20:00 UTC"`), `a comma is missing before "UTC"`},
		"new_payee, other":       {with("new_payee", `"ask"`), `"ask" is neither "approve" nor "deny"`},
		"new_payee as flag":      {with("new_payee", `true`), `must be text in quotes`},
		"price_jump, no x":       {with("price_jump", `"3"`), `"3" is not a multiple: write one like "3x"`},
		"price_jump, percent":    {with("price_jump", `"300%"`), `is not a multiple`},
		"price_jump, a number":   {with("price_jump", `3`), `must be text in quotes`},
		"price_jump, one":        {with("price_jump", `"1x"`), `"1x" is no jump`},
		"price_jump, below one":  {with("price_jump", `"0.5x"`), `"0.5x" is no jump`},
		"price_jump, 1.000":      {with("price_jump", `"1.000x"`), `is no jump`},
		"price_jump, fine":       {with("price_jump", `"1.0001x"`), `is not a multiple`},
		"price_jump, a sign":     {with("price_jump", `"-3x"`), `is not a multiple`},
		"price_jump, a point":    {with("price_jump", `"3.x"`), `is not a multiple`},
		"price_jump, power":      {with("price_jump", `"1e3x"`), `is not a multiple`},
		"price_jump, huge":       {with("price_jump", `"1000.1x"`), `is above 1000x`},
		"mode off":               {with("mode", `"off"`), `"off" is not a mode: write "enforce" or "shadow"`},
		"total as amount":        {with("approve_above_total", `"$15"`), `"$15" has no window`},
		"total without $":        {with("approve_above_total", `["15 / 24h"]`), `write "$15" for dollars`},
		"total none":             {with("approve_above_total", `["none"]`), `"none" is no total`},
		"total twice":            {with("approve_above_total", `["$1 / 24h", "$2 / 24h"]`), `another one has the same window and scope`},
		"total of a number":      {with("approve_above_total", `15`), `must be a list of texts, not the number 15`},
		"total of an org":        {"[org]\napprove_above_total = \"$1 / 24h\"\n", `org.approve_above_total: unknown key`},

		// Other values.
		"frozen as text":        {with("frozen", `"true"`), `must be true or false, without quotes, not text`},
		"frozen as number":      {with("frozen", `1`), `must be true or false`},
		"chat as text":          {with("chat_approval", `"no"`), `must be true or false`},
		"validity as number":    {with("max_validity", `60`), `must be text in quotes, not the number 60`},
		"validity too long":     {with("max_validity", `"601s"`), `must be 10s to 600s`},
		"validity in hours":     {with("max_validity", `"1h"`), `must be 10s to 600s`},
		"validity too short":    {with("max_validity", `"9s"`), `must be 10s to 600s`},
		"validity without unit": {with("max_validity", `"60"`), `write one number and one unit`},
		"validity in words":     {with("max_validity", `"one minute"`), `write one number and one unit`},
		"window too long":       {with("duplicate_window", `"31d"`), `must be 0s to 30d`},
		"ttl too short":         {with("approval_ttl", `"5s"`), `must be 60s to 90d`},
		"pending as text":       {with("max_pending", `"20"`), `must be a whole number, without quotes`},
		"pending, none":         {with("max_pending", `0`), `must be 1 to 10000, not 0`},
		"pending, negative":     {with("max_pending", `-1`), `must be 1 to 10000`},
		"pending as float":      {with("max_pending", `1.5`), `must be a whole number`},
		"pending, huge":         {with("max_pending", `9223372036854775807`), `must be 1 to 10000`},
		"zone unknown":          {with("timezone", `"Europe/Berlinn"`), `is not a time zone that this machine knows`},
		"zone local":            {with("timezone", `"Local"`), `differs from machine to machine`},
		"zone as a path":        {with("timezone", `"../../etc/passwd"`), `is not a time zone`},
		"zone offset":           {with("timezone", `"+02:00"`), `is not a time zone`},
		"from nobody":           {with("from", `"defualt"`), `policy.default.from: there is no [policy.defualt]; did you mean default?`},
		"from itself":           {with("from", `"default"`), `a circle`},
		"a circle":              {"[policy.a]\nfrom = \"b\"\n[policy.b]\nfrom = \"c\"\n[policy.c]\nfrom = \"a\"\n", `a circle`},
		"org name, a break":     {"[org]\nname = \"a\\nb\"\n", `org.name: must be one line of text`},
		"org with from":         {"[org]\nfrom = \"x\"\n", `org.from: unknown key`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.Parse("bad.toml", []byte(tt.doc))
			if err == nil || p != nil {
				t.Fatalf("accepted:\n%s", tt.doc)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			var e *policy.Error
			if !errors.As(err, &e) || e.File != "bad.toml" || e.Line == 0 {
				t.Errorf("not an Error with its place: %#v", err)
			}
			if strings.Contains(name, "YAML") {
				return
			}
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "policy: bad.toml:") {
					t.Errorf("a fault without its place: %s", line)
				}
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	doc := `# a file that is about more than policy
[treasury]
key_env = "CANOPY_KEY"
[[chain]]
id = "eip155:8453"
[org]
name = "Ac\u006de"
[policy]
# an agent as an inline table
cleo = { from = "default", max_payment = "$2" }
[policy.default]
mode = "enforce"
max_payment = "$10"
caps = [
	"$20 / 24h",   # a day
	'$5/1h  per host',
	"1 payment / 30s",
]
approve_above = "$0"
allow = ["*"]
deny = []
max_validity = "600s"
duplicate_window = "0s"
approval_ttl = "90d"
max_pending = 10000
chat_approval = false
[policy.ana]
from = "cleo"
deny = ["host:b.example"]
[policy."b.c-d_e"]
caps = ["none"]
`
	p, err := policy.Parse("canopy.toml", []byte(doc), "treasury", "chain", "ledger")
	if err != nil {
		t.Fatal(err)
	}
	if p.Org() != "Acme" || p.Name() != "canopy.toml" || p.MaxPayment("ana") != 2*usd || p.MaxPayment("b.c-d_e") != usd {
		t.Errorf("org %q, name %q, max %v and %v", p.Org(), p.Name(), p.MaxPayment("ana"), p.MaxPayment("b.c-d_e"))
	}
	v := p.Evaluate(pay("ana", "a.example", usd, addrA), now, policy.History{})
	var texts []string
	for _, l := range v.Limits {
		texts = append(texts, l.Text)
	}
	if got := strings.Join(texts, ", "); got != "$20 / 24h, $5/1h  per host, 1 payment / 30s" {
		t.Errorf("caps as written: %s", got)
	}
	if v.MaxValidity != 10*time.Minute || v.DuplicateWindow != 0 || v.ApprovalTTL != 90*24*time.Hour || v.MaxPending != 10000 || v.Status != payment.PendingApproval {
		t.Errorf("verdict %+v", v)
	}
	full := p.Evaluate(pay("ana", "a.example", usd, addrA), now, policy.History{Uses: []policy.Use{{Limit: v.Limits[1], USD: 5 * usd}}})
	if got, want := full.Reason(), "Spend cap exceeded: $5.00 + $1.00 > $5/1h  per host"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	again, err := policy.Parse("canopy.toml", []byte(doc+" "), "treasury", "chain")
	if err != nil || again.Hash() == p.Hash() {
		t.Errorf("%v: the hash is not over the bytes", err)
	}
	// CRLF is TOML too.
	if _, err := policy.Parse("x", []byte(strings.ReplaceAll(doc, "\n", "\r\n")), "treasury", "chain"); err != nil {
		t.Error(err)
	}
}

// TestManyFaults pins that faults are told together and in the order of their
// lines, and not without end.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	_, err := policy.Parse("x.toml", []byte("[policy.b]\nfrom = \"c\"\nhours = \"x\"\n[policy.a]\nmax_payment = 1\ncaps = [\"none\"]\n"))
	want := `policy: x.toml:2: policy.b.from: there is no [policy.c]; did you mean b?
policy: x.toml:3: policy.b.hours: "x" is neither a day nor a time: write days as Mon, Tue, Wed, Thu, Fri, Sat and Sun, times as 08:00-20:00, and a zone at the end
policy: x.toml:5: policy.a.max_payment: 1 has no unit: write "$1", in quotes`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = policy.Parse("x.toml", []byte(strings.Repeat("[[policy]]\n", 1000)))
	if n := strings.Count(err.Error(), "\n"); n > 20 {
		t.Errorf("%d lines of error", n)
	}
}

// TestHostileDocuments bounds what a document can cost.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	const size = policy.MaxDocument
	fill := func(head, unit, tail string) []byte {
		return []byte(head + strings.Repeat(unit, (size-len(head)-len(tail))/len(unit)) + tail)
	}
	var keys, tables, entries, agents strings.Builder
	for i := 0; keys.Len() < size-40; i++ {
		fmt.Fprintf(&keys, "k%d=1\n", i)
	}
	for i := 0; tables.Len() < size-40; i++ {
		fmt.Fprintf(&tables, "[a%d]\n", i)
	}
	entries.WriteString("[policy.a]\ncaps=[\"none\"]\nallow=[")
	for i := 0; entries.Len() < size-80; i++ {
		fmt.Fprintf(&entries, "\"host:h%d.example\",", i)
	}
	entries.WriteString("]\n")
	agents.WriteString("[policy.a0]\ncaps=[\"none\"]\ndeny=[\"host:a.example\"]\n")
	for i := 1; agents.Len() < size-80; i++ {
		fmt.Fprintf(&agents, "[policy.a%d]\nfrom=\"a%d\"\n", i, i-1)
	}
	for name, doc := range map[string][]byte{
		"deep arrays":    fill("x=", "[", ""),
		"closed arrays":  []byte("x=" + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)),
		"deep tables":    []byte("policy=" + strings.Repeat("{a=", 9000) + "1" + strings.Repeat("}", 9000)),
		"a dotted key":   fill("[policy]\na", ".a", "=1\n"),
		"a dotted head":  fill("[policy", ".a", "]\n"),
		"many keys":      []byte("[policy.a]\n" + keys.String()),
		"many tables":    []byte(tables.String()),
		"many entries":   []byte(entries.String()),
		"many agents":    []byte(agents.String()),
		"a long key":     fill("[policy.a]\n", "k", "=1\n"),
		"a long text":    fill("[policy.a]\nmax_payment=\"", "1", "\"\n"),
		"a long cap":     fill("[policy.a]\ncaps=[\"$1 / ", "1", "h\"]\n"),
		"a long host":    fill("[policy.a]\nallow=[\"host:", "a.", "b\"]\n"),
		"many parts":     fill("[policy.a]\nallow=[\"", "chain:eip155:1 ", "\"]\n"),
		"NUL":            fill("", "\x00", ""),
		"blank":          fill("", "\n", ""),
		"too large":      fill("", "#", "##\n"),
		"a long comment": fill("#", "x", "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := policy.Parse("hostile.toml", doc)
			took := time.Since(start)
			if limit := 3 * time.Second; took > limit && !raceEnabled {
				t.Errorf("%d bytes took %v", len(doc), took)
			}
			if err != nil && len(err.Error()) > 20_000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			t.Logf("%v, %d bytes of error", took.Round(time.Millisecond), len(fmt.Sprint(err)))
		})
	}
	if _, err := policy.Parse("x", make([]byte, size+1)); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("too large: %v", err)
	}
}
