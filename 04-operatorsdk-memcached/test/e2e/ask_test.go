//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/operatortest/incluster"
)

// ask sends the lines of a command to memcached, in a pod or through a Service, and returns the first line of the
// answer.
func ask(ctx context.Context, target string, lines ...string) string {
	GinkgoHelper()
	return askUntil(ctx, target, "", lines...)
}

// askUntil sends the lines, too, but returns the first line of the answer that begins with the prefix.
func askUntil(ctx context.Context, target, prefix string, lines ...string) string {
	GinkgoHelper()
	var answer string
	err := incluster.Forward(ctx, memcachedNamespace, target, "12000", func(ctx context.Context, address string) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("connect to memcached: %w", err)
		}
		defer connection.Close()
		stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
		defer stop()
		if _, err := fmt.Fprintf(connection, "%s\r\n", strings.Join(lines, "\r\n")); err != nil {
			return fmt.Errorf("send to memcached: %w", err)
		}
		answers := bufio.NewScanner(connection)
		for answers.Scan() {
			if strings.HasPrefix(answers.Text(), prefix) {
				answer = answers.Text()
				return nil
			}
		}
		return errors.Join(errors.New("memcached's answer lacks the expected line"), answers.Err())
	})
	Expect(err).NotTo(HaveOccurred())
	return answer
}
