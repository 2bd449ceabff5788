package classroom

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are chosen below the range from which operating systems take the local
// ends of outgoing connections (32768 on Linux, 49152 on macOS), so that a port
// found free is not taken by a mere connection a moment later.
const (
	lowestPort  = 20000
	highestPort = 32767
)

// freePorts chooses n different free loopback ports at random.
func freePorts(n int) ([]int, error) {
	var ports []int
	taken := map[int]bool{}
	for range 1000 {
		if len(ports) == n {
			return ports, nil
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		if !taken[port] && portFree(port) {
			taken[port] = true
			ports = append(ports, port)
		}
	}
	return nil, errors.New("no free port on 127.0.0.1 between 20000 and 32767: end a program that holds many of them")
}

// portFree tries the loopback address and all addresses: both must be free to listen on.
func portFree(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = listener.Close()
	}
	return true
}

// errPortTaken marks errors about a port that has to be used: another try finds it taken as well.
var errPortTaken = errors.New("is taken by another program")

// requirePort fails when a port that has to be used is taken.
func requirePort(port int, purpose, remedy string) error {
	if portFree(port) {
		return nil
	}
	return fmt.Errorf("port %d (%s) %w: %s", port, purpose, errPortTaken, remedy)
}
