/** The thread that parses long YAML (L3): it gets a text and returns JSON or an error. ./yamlThread.ts starts and ends it. */

import { parentPort } from 'node:worker_threads'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseYaml, YamlSyntaxError } from '#api/machinery/yaml'

export interface YamlJob {
  readonly id: number
  readonly text: string
}

export type YamlOutcome = { readonly id: number } & ({ readonly json: string } | { readonly fault: string })

parentPort?.on('message', (job: YamlJob) => parentPort?.postMessage(outcomeOf(job)))

function outcomeOf({ id, text }: YamlJob): YamlOutcome {
  try {
    return { id, json: stringifyExactly(parseYaml(text)) }
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) throw error
    return { id, fault: error.message }
  }
}
