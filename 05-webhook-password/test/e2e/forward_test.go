//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// requestTimeout bounds a request to a pod, with all that comes before it.
const requestTimeout = 30 * time.Second

// forwarding is the line in which kubectl tells the address that it forwards.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:[0-9]+) `)

// forward has kubectl forward a free port of this machine to a port of a pod or Service of the operator, and
// calls the function with its address. It ends after that: kubectl gives up when the other side cuts a connection.
func forward(ctx context.Context, target, port string, use func(ctx context.Context, address string) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, "kubectl", "port-forward", "--namespace="+namespace, target, ":"+port)
	command.Stderr = GinkgoWriter
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connect to kubectl: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start kubectl: %w", err)
	}
	defer func() {
		cancel()
		_ = command.Wait() // always an error: kubectl was killed
	}()
	address, err := forwardedAddress(output)
	if err != nil {
		return err
	}
	return use(ctx, address)
}

func forwardedAddress(output io.Reader) (string, error) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
			return match[1], nil
		}
	}
	return "", errors.Join(errors.New("kubectl forwards no port"), lines.Err())
}
