/** What ConfigMap and Secret share (L1): sizes of their data and immutability. */
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { immutableMessage } from '#api/machinery/objectMeta'

/** 1 MiB over all keys. */
export const maxDataBytes = 1024 * 1024

/** Bytes that a base64 text decodes to. */
export function base64Length(text: string): number {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  return Math.floor((text.length * 3) / 4) - padding
}

/** Bytes of a text in UTF-8. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    // A surrogate pair is two units and four bytes: two more, one for each half.
    if (code >= 0x80) bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2
  }
  return bytes
}

/** One error when the field of an immutable object was changed. */
export function immutableWhenSet(value: unknown, old: unknown, path: FieldPath): FieldError[] {
  return semanticEqual(value, old) ? [] : [fieldError.forbidden(path, `${immutableMessage} when \`immutable\` is set`)]
}
