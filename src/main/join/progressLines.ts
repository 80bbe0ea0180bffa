/** The lines with which `skiff join` says what it has done (L5). */
import { printable } from '#base/printable'

export function done(line: string): void {
  process.stderr.write(` ✓ ${printable(line)}\n`)
}
