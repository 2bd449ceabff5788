// Command bundle reads an operator's manifests and makes a bundle for the Operator Lifecycle Manager (OLM), as
// `operator-sdk generate bundle` does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// options describe the release.
type options struct {
	// version is the release, such as 0.1.0.
	version string
	// channels are the channels that offer the release. defaultChannel is the one for users who name none; it may be
	// empty.
	channels       []string
	defaultChannel string
}

func main() {
	if err := run(os.Args[1:], os.Stdin, "."); err != nil {
		fmt.Fprintf(os.Stderr, "bundle: %v\n", err)
		os.Exit(1)
	}
}

// run reads manifests and writes the bundle to dir: the folder bundle and the file bundle.Dockerfile. Its errors are
// one line long.
func run(args []string, input io.Reader, dir string) error {
	chosen, err := parse(args)
	if err != nil {
		return err
	}
	manifests, err := readManifests(input)
	if err != nil {
		return err
	}
	files, err := makeBundle(manifests, chosen)
	if err != nil {
		return err
	}
	return files.write(dir)
}

// parse reads the flags, which have the same names as operator-sdk's.
func parse(args []string) (options, error) {
	var chosen options
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the package would print all flags after each mistake
	flags.StringVar(&chosen.version, "version", "", "the release, such as 0.1.0")
	channels := flags.String("channels", "", "the channels that offer it, such as candidate,fast")
	flags.StringVar(&chosen.defaultChannel, "default-channel", "", "the channel for users who name none")
	if err := flags.Parse(args); err != nil {
		return chosen, fmt.Errorf("%w: the flags are --version, --channels and --default-channel", err)
	}
	if flags.NArg() > 0 {
		return chosen, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	chosen.channels = strings.Split(*channels, ",")
	return chosen, chosen.validate()
}

func (o *options) validate() error {
	if !isVersion(o.version) {
		return fmt.Errorf("--version=%s: give three numbers, such as 0.1.0 or 0.1.0-rc.1, without a leading v or a +", o.version)
	}
	offered := o.defaultChannel == ""
	for _, channel := range o.channels {
		if channel == "" || strings.ContainsAny(channel, " \t\n") {
			return errors.New("--channels: give names separated by commas, such as candidate,fast")
		}
		offered = offered || channel == o.defaultChannel
	}
	if !offered {
		return fmt.Errorf("--default-channel=%s: it is not one of --channels=%s", o.defaultChannel, strings.Join(o.channels, ","))
	}
	return nil
}
