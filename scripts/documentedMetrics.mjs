#!/usr/bin/env node
/**
 * Writes src/main/documentedMetrics.ts: name, stability, type and labels of each STABLE and BETA metric of one release, and which component serves it at
 * which path. Names alone are taken, never texts. Argument: the release's test/instrumentation/documentation/documentation-list.yaml.
 */
import fs from 'node:fs'

const [input] = process.argv.slice(2)
if (!input) {
  console.error('usage: documentedMetrics.mjs DOCUMENTATION_LIST_YAML')
  process.exit(2)
}
const components = { 'kube-apiserver': 'a', 'kube-controller-manager': 'c', 'kube-proxy': 'p', 'kube-scheduler': 's', kubelet: 'k' }

/** Reads the list's own YAML: a sequence of mappings whose values are scalars, sequences of scalars, or endpoints. */
function entriesOf(yaml) {
  return yaml
    .split(/^- /m)
    .slice(1)
    .map((block) => {
      const scalar = (key) => new RegExp(`^(?:  )?${key}: (.*)$`, 'm').exec(block)?.[1]?.replaceAll('"', '')
      const list = (key) => [...(new RegExp(`^  ${key}:\\n((?:  - .*\\n)+)`, 'm').exec(block)?.[1] ?? '').matchAll(/^ {2}- (.*)$/gm)].map(([, one]) => one)
      const endpoints = [...block.matchAll(/- component: (.*)\n {4}endpoint: (.*)/g)].map(([, component, path]) => ({ component, path }))
      const name = [scalar('namespace'), scalar('subsystem'), scalar('name')].filter(Boolean).join('_')
      return { name, type: scalar('type'), stability: scalar('stabilityLevel'), labels: list('labels').sort(), since: scalar('deprecatedVersion'), endpoints }
    })
}

const rows = entriesOf(fs.readFileSync(input, 'utf8'))
  .filter(({ stability }) => stability === 'STABLE' || stability === 'BETA')
  .sort((a, b) => (a.name < b.name ? -1 : 1))
  .map(({ name, stability, type, labels, endpoints, since = '' }) => {
    const served = endpoints.flatMap(({ component }) => components[component] ?? []).join('')
    return `${name} ${stability} ${type} ${served} ${endpoints[0].path} ${labels.join(',') || '-'} ${since}`.trim()
  })
const text = `/**
 * The STABLE and BETA metrics of Kubernetes v1.36 (L5), written by scripts/documentedMetrics.mjs. A line: name, stability, type, the components that
 * serve it (a: API server, c: controller manager, k: kubelet, p: proxy, s: scheduler), path, labels, the version that deprecated it.
 */
const lines = \`
${rows.join('\n')}\`

export interface DocumentedMetric {
  readonly name: string
  readonly stability: 'STABLE' | 'BETA'
  /** Custom: written at each scrape. */
  readonly type: 'Counter' | 'Gauge' | 'Histogram' | 'Custom'
  readonly components: string
  readonly path: string
  readonly labels: readonly string[]
  readonly deprecatedVersion?: string | undefined
}

export const documentedMetrics: ReadonlyMap<string, DocumentedMetric> = new Map(
  lines
    .trim()
    .split('\\n')
    .map((line) => {
      const [name = '', stability, type, components, path, labels = '', deprecatedVersion] = line.split(' ')
      return [name, { name, stability, type, components, path, labels: labels === '-' ? [] : labels.split(','), deprecatedVersion } as DocumentedMetric]
    }),
)
`
fs.writeFileSync(new URL('../src/main/documentedMetrics.ts', import.meta.url), text)
