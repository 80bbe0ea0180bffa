/** The texts of the OpenAPI documents (L5), from a file in the program's folder. */
import { readFileSync } from 'node:fs'
import { describeFrom } from '#api/openapi/descriptions'

/** Read when the first text is asked for. */
export function describeLazily() {
  let describe: ReturnType<typeof describeFrom> | undefined
  return (definition: string, field?: string) => {
    describe ??= describeFrom(readDescriptions())
    return describe(definition, field)
  }
}

function readDescriptions(): Parameters<typeof describeFrom>[0] {
  try {
    return JSON.parse(readFileSync(new URL('./descriptions.json', import.meta.url), 'utf8'))
  } catch {
    return {}
  }
}
