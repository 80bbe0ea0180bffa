/** The values that directives of a Corefile have (L3). Pure. */
import { CorefileError, type Directive } from './syntax.ts'

/** A zone in lower case without its last dot. @throws CorefileError */
export function nameOf(text: string, line: number): string {
  const name = text.toLowerCase().replace(/\.$/, '')
  if (name.length > 253 || (name !== '' && !/^[a-z0-9_*-]{1,63}(\.[a-z0-9_-]{1,63})*$/.test(name))) throw new CorefileError(line, `"${text}" is no domain name`)
  return name
}

/** A number of seconds, of queries or the like. @throws CorefileError */
export function wholeNumber(text: string | undefined, { name, line }: Directive, most: number): number {
  const value = /^\d{1,9}$/.test(text ?? '') ? Number(text) : Number.NaN
  if (!(value <= most)) throw new CorefileError(line, `${name}: "${text ?? ''}" must be a number from 0 to ${most}`)
  return value
}
