/** The thread that parses long YAML (L3): it gets a text and returns JSON or an error. ./yamlThread.ts starts and ends it. */

import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseYaml, YamlSyntaxError } from '#api/machinery/yaml'
import { serveJobs } from './jobThread.ts'

export type YamlOutcome = { readonly json: string } | { readonly fault: string }

serveJobs((text: string): YamlOutcome => {
  try {
    return { json: stringifyExactly(parseYaml(text)) }
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error
    return { fault: error.message }
  }
})
