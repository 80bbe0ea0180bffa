/** Reads the texts that scripts/descriptions.mjs collected at build time (L1). Without the file nothing is described, and all else works. */
import type { Describe } from './schemas.ts'

/** The file's form: definition → [its text, field → text]. */
export type DescriptionsFile = Readonly<Record<string, readonly [text: string, fields: Readonly<Record<string, string>>]>>

export function describeFrom(texts: DescriptionsFile): Describe {
  return (definition, field) => {
    const entry = texts[definition]
    const text = field === undefined ? entry?.[0] : entry?.[1][field]
    return text === '' ? undefined : text
  }
}
