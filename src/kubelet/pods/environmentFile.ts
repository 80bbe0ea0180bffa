/**
 * Environment files that containers leave in a volume for others of their pod (L3, pure): a subset of what a shell reads, every value in single quotes.
 * Upstream: kubelet/util/env/env_util.go (v1.36).
 */

/** The value of a variable; empty when the file does not set it. @throws Error that names the line */
export function environmentFileValue(text: string, key: string): string {
  const lines = text
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => line.replace(/\r$/, ''))
  for (let index = 0; index < lines.length; index++) {
    const line = (lines[index] ?? '').replace(/^[ \t]+/, '')
    if (line === '' || line.startsWith('#')) continue
    const wrong = (what: string) => new Error(`invalid environment variable format at line ${index + 1}: ${what}`)
    const equals = line.indexOf('=')
    if (equals < 0) throw wrong("missing '='")
    const name = line.slice(0, equals)
    if (name.trim() === '') throw wrong('empty variable name')
    if (/[ \t]$/.test(name)) throw wrong("whitespace before '=' is not allowed")
    const written = line.slice(equals + 1)
    // As in a shell: what follows the blank is not the value.
    if (/^[ \t]/.test(written)) {
      if (name === key) return ''
      continue
    }
    if (!written.startsWith("'")) throw wrong('value must be enclosed in single quotes')
    const first = index + 1
    const parts = [written.slice(1)]
    while (!parts.at(-1)?.includes("'")) {
      index++
      if (index >= lines.length) throw new Error(`invalid environment variable format starting at line ${first}: unclosed single quote`)
      parts.push(lines[index] ?? '')
    }
    const value = parts.join('\n')
    const end = value.indexOf("'")
    if (!/^[ \t]*(#|$)/.test(value.slice(end + 1))) throw wrong('unexpected content after closing quote')
    if (name === key) return value.slice(0, end)
  }
  return ''
}
