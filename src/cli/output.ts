/**
 * Prints the result of a command (L4): as JSON or as text. Names come from the cluster, where tenants choose them; so strings are escaped before the text is
 * made of them, and no name can write a line of its own.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { printableData } from '#base/printable'
import type { CommandContext } from './command.ts'

export function printFound<T>({ stdout }: CommandContext, format: 'json' | 'text', found: T, describe: (found: T) => string): void {
  stdout.write(format === 'json' ? `${stringifyExactly(found, 2)}\n` : describe(printableData(found)))
}
