/** What is worked out of a schema once and kept with it (L1). */
import type { Schema } from './schema.ts'

/** `make`, asked once for each schema. */
export function perSchema<T extends object>(make: (schema: Schema) => T): (schema: Schema) => T {
  const made = new WeakMap<Schema, T>()
  return (schema) => {
    let one = made.get(schema)
    if (!one) {
      one = make(schema)
      made.set(schema, one)
    }
    return one
  }
}
