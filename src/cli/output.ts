/**
 * Prints the result of a command (L4): as JSON, YAML or text. Names come from the cluster, where tenants choose them; so strings are escaped before the text is
 * made of them, and no name can write a line of its own.
 */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { toYaml } from '#api/machinery/yaml'
import { printableData } from '#base/printable'
import type { CommandContext } from './command.ts'

export function printFound<T>({ stdout }: CommandContext, format: 'json' | 'yaml' | 'text', found: T, describe: (found: T) => string): void {
  const texts = {
    json: () => `${stringifyExactly(found, 2)}\n`,
    yaml: () => toYaml(JSON.parse(stringifyExactly(found))),
    text: () => describe(printableData(found)),
  }
  stdout.write(texts[format]())
}
