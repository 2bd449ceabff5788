package main

import (
	"errors"

	"github.com/spf13/cobra"
)

type playOptions struct {
	chapters []string
	quiet    bool
	step     bool
}

func (a *app) play(*cobra.Command, playOptions) error { return errors.New("not yet") }

func (a *app) playCommand() *cobra.Command { return &cobra.Command{Use: "play"} }
func (a *app) tourCommand() *cobra.Command { return &cobra.Command{Use: "tour"} }
func (a *app) snippetsCommand() *cobra.Command { return &cobra.Command{Use: "snippets"} }
