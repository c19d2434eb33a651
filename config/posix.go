package config

import "runtime"

// posix says that file modes mean what they say.
const posix = runtime.GOOS != "windows"
