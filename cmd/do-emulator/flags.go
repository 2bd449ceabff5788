package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"example.com/operator-workshop/controlplane"
	"example.com/operator-workshop/doks"
)

// The values of --clusters.
const (
	stub = "stub"
	kwok = "kwok"
)

// tokenVariable is the environment variable for a token, instead of or in addition to those of --token. Other users of
// the machine can see a command's arguments, but not its environment.
const tokenVariable = "DO_EMULATOR_TOKEN"

type flags struct {
	listen   string
	clusters string
	assets   string
	faults   []string
	options  doks.Options
}

const usage = `do-emulator emulates the part of DigitalOcean's API that is about Kubernetes clusters, on this machine and at no cost.

  do-emulator --token secret
  do-emulator --token secret --clusters kwok --state emulator.json
  do-emulator --token secret --fault 'POST /v2/kubernetes/clusters drop after'

A fault is METHOD PATH KIND, followed by any of: after (the effect), count=N (-1 for every request), skip=N,
retry_after=TIME, delay=TIME, state=STATE. A star matches any method or path; within a path, it matches anything but a slash.
Kinds: 429, 500, 502, 503, delay, drop (no reply), cut (half a reply), stuck-delete, lagging-list, lagging-get, end-state.

These requests need no token:
  GET, DELETE        /emulator/journal                  the requests, and what took effect
  GET, POST, DELETE  /emulator/faults                   {"method": "POST", "path": "/v2/kubernetes/clusters", "kind": "drop", "after": true}
  GET                /emulator/clusters                 all clusters
  DELETE             /emulator/clusters/ID              remove a cluster immediately
  POST               /emulator/clusters/ID/state        {"state": "degraded", "message": "why"}
  PUT                /emulator/clusters/ID/tags         {"tags": ["kluster-uid:UID"]}
  POST               /emulator/clusters/ID/resources    {"load_balancers": ["name"], "volumes": [], "volume_snapshots": []}
  GET                /emulator/leftovers                what deleted clusters left behind

Flags:
`

// parseFlags reads the command line. Given --help, it prints the help and returns pflag.ErrHelp.
func parseFlags(args []string, output io.Writer) (flags, error) {
	chosen := flags{options: doks.Defaults()}
	set := newFlagSet(&chosen)
	set.SetOutput(output)
	set.Usage = func() { fmt.Fprint(output, usage+set.FlagUsages()) }
	if err := set.Parse(args); err != nil {
		return chosen, err
	}
	if set.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q: see --help", set.Arg(0))
	}
	for _, text := range chosen.faults {
		fault, err := doks.ParseFault(text)
		if err != nil {
			return chosen, fmt.Errorf("--fault: %w", err)
		}
		chosen.options.Faults = append(chosen.options.Faults, fault)
	}
	if token := os.Getenv(tokenVariable); token != "" && !slices.Contains(chosen.options.Tokens, token) {
		chosen.options.Tokens = append(chosen.options.Tokens, token)
	}
	return chosen, chosen.check()
}

func newFlagSet(chosen *flags) *pflag.FlagSet {
	o := &chosen.options
	set := pflag.NewFlagSet("do-emulator", pflag.ContinueOnError)
	set.SortFlags = false
	set.StringVar(&chosen.listen, "listen", "127.0.0.1:8090", "loopback `address` to listen on; port 0 is any free one")
	set.StringArrayVar(&o.Tokens, "token", nil, "`token` that may do everything (repeatable); $"+tokenVariable+" gives one that other users of this machine can't see")
	set.StringArrayVar(&o.ReadOnlyTokens, "read-only-token", nil, "`token` that may only read (repeatable)")
	set.StringArrayVar(&o.ClusterTokens, "cluster-token", nil, "`token` that may do everything with clusters, but not read its account (repeatable)")
	set.StringVar(&o.Team, "team", "", "`UUID` of the team that all tokens belong to; if empty, a fixed one")
	set.StringVar(&chosen.clusters, "clusters", stub, "`kind` of the clusters: stub has no control planes; kwok gives each cluster a real one with simulated nodes")
	set.StringVar(&chosen.assets, "assets", "", "`folder` with the control plane's programs, for --clusters kwok; by default $"+controlplane.AssetsVariable+", or bin/ in the workshop")
	set.StringVar(&o.StateFile, "state", "", "`file` that keeps the clusters for the next start; with it, their control planes keep running when the emulator ends")
	set.DurationVar(&o.ProvisionTime, "provision-time", o.ProvisionTime, "`time` that provisioning a cluster takes")
	set.DurationVar(&o.NodeTime, "node-time", o.NodeTime, "`time` that a node takes to start, to drain and to be removed")
	set.DurationVar(&o.UpgradeTime, "upgrade-time", o.UpgradeTime, "`time` that upgrading a cluster takes")
	set.DurationVar(&o.DeleteTime, "delete-time", o.DeleteTime, "`time` that deleting a cluster takes")
	set.StringVar((*string)(&o.EndState), "end-state", string(o.EndState), "`state` that provisioning ends in: running, degraded or error")
	set.StringVar((*string)(&o.DeleteState), "delete-state", string(o.DeleteState), "`state` of a cluster during the delete time: deleted, deleting (which godo v1.236.0 can't read), or none, which removes it immediately")
	set.IntVar(&o.DropletLimit, "droplet-limit", o.DropletLimit, "`number` of nodes that the account may have; 0 is no limit")
	set.IntVar(&o.RequestsPerMinute, "requests-per-minute", o.RequestsPerMinute, "`number` of requests a token may make in a minute; 0 is no limit")
	set.IntVar(&o.RequestsPerHour, "requests-per-hour", o.RequestsPerHour, "`number` of requests a token may make in an hour; 0 is no limit")
	set.StringArrayVar(&chosen.faults, "fault", nil, "`fault` to inject, as described above (repeatable)")
	return set
}

// check validates --listen and --clusters, and requires at least one token of any kind.
func (f flags) check() error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if address, err := netip.ParseAddr(host); err != nil || !address.IsLoopback() {
		return fmt.Errorf("--listen %s: the host must be a loopback address such as 127.0.0.1, because anyone who reaches the emulator controls it", f.listen)
	}
	if f.clusters != stub && f.clusters != kwok {
		return fmt.Errorf("--clusters %s: choose stub or kwok", f.clusters)
	}
	if len(f.options.Tokens)+len(f.options.ReadOnlyTokens)+len(f.options.ClusterTokens) == 0 {
		return errors.New("--token is missing: choose any, such as --token secret, and give the same to the operator")
	}
	return nil
}
