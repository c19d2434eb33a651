package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in a release; else the build information tells.
var version = ""

// build is what a binary knows of itself.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func buildOf() build {
	b := build{Version: version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		b.Version = oneOf(b.Version, "unknown")
		return b
	}
	b.Version, b.Go = oneOf(b.Version, info.Main.Version, "(devel)"), info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  canopy version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := buildOf()
			if a.json {
				return a.printJSON(b)
			}
			a.printf("canopy %s %s", b.Version, b.Go)
			if b.Revision != "" {
				a.printf(" %.12s", b.Revision)
			}
			if b.Modified {
				a.printf(" (modified)")
			}
			a.printf("\n")
			return nil
		},
	}
}
