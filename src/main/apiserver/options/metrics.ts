/** Which metrics a component shows, and which values of labels it keeps apart (L5). Upstream: component-base/metrics/options.go, api/v1/config.go (v1.36). */
import { parseYaml } from '#api/machinery/yaml'
import { hiddenMetricsFault, previousVersion } from '#base/metrics'
import { aliasesOf } from '../../metricAliases.ts'
import type { AllowedLabels, MetricRules } from '../../prometheus.ts'
import { type Flag, flag, list, text, UsageError } from './flags.ts'
import { readNamed, usable } from './namedFiles.ts'
import { optionGroup } from './optionGroup.ts'

const manifestFlag = 'allow-metric-labels-manifest'
type Mapping = Readonly<Record<string, string>>

export const metrics = optionGroup({
  name: 'Metrics',
  flags: {
    'allow-metric-labels': mapping('METRIC,LABEL=VALUE,VALUE…: the values that a label of a metric may have; others become "unexpected"'),
    [manifestFlag]: text('A YAML file that maps "METRIC,LABEL" to "VALUE,VALUE…", instead of --allow-metric-labels'),
    'disabled-metrics': list('Metrics, by their whole names, that are neither counted nor shown'),
    'reference-metrics': flag(
      'Show metrics under the names of the reference documents, too: scheduler_scheduling_duration_seconds, controller_sync_duration_seconds',
    ),
    'show-hidden-metrics-for-version': text(`Only ${previousVersion}: shows metrics that this version hides because they are deprecated`),
  },
  async settings(values, context): Promise<MetricRules> {
    const given = values['allow-metric-labels']
    const disabled = values['disabled-metrics']
    const manifest = await readNamed(values[manifestFlag], context)
    const hidden = hiddenMetricsFault('metrics.showHiddenMetricsForVersion', values['show-hidden-metrics-for-version'])
    const faults = [
      ...(hidden === undefined ? [] : [hidden]),
      ...disabled.filter((name) => !metricName.test(name)).map((name) => `--disabled-metrics must be fully qualified metric names, got "${name}"`),
      ...(Object.keys(given).length > 0 && manifest !== undefined ? [`cannot specify both --allow-metric-labels and --${manifestFlag}`] : []),
    ]
    if (faults.length > 0) throw new UsageError(faults)
    return {
      disabled,
      extend: values['reference-metrics'] ? aliasesOf : undefined,
      showHidden: values['show-hidden-metrics-for-version'] !== '',
      allowedLabels: manifest === undefined ? allowedLabels('allow-metric-labels', given) : usable(() => readManifest(manifest)),
    }
  },
})

/** One pair a flag, whose value may have commas; several when each stands in quotes. Upstream: pflag's StringToString. */
function mapping(usage: string): Flag<Mapping> {
  const format = (value: Mapping) =>
    Object.entries(value)
      .map((pair) => pair.join('='))
      .join(';')
  const parse = (given: string, before: Mapping = {}) => {
    const parts = given.split('=').length === 2 ? [given.replace(/^"(.*)"$/, '$1')] : [...given.matchAll(/"([^"]*)"|([^,]+)/g)].map(([, a, b]) => a ?? b ?? '')
    const pairs = parts.map((part): [string, string] => {
      const at = part.indexOf('=')
      if (at < 0) throw new Error(`${part} must be formatted as key=value`)
      return [part.slice(0, at), part.slice(at + 1)]
    })
    return { ...before, ...Object.fromEntries(pairs) }
  }
  return { type: 'stringToString', usage, default: {}, format, parse }
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const mappingKey = /^([a-zA-Z_:][a-zA-Z0-9_:]*),([a-zA-Z_][a-zA-Z0-9_]*)$/

function readManifest(manifest: string): AllowedLabels {
  const read = parseYaml(manifest)
  if (typeof read !== 'object' || read === null || Object.values(read).some((value) => typeof value !== 'string'))
    throw new Error(`--${manifestFlag}: failed to parse allow list manifest: it maps no text to text`)
  return allowedLabels(manifestFlag, read as Mapping)
}

/** @throws UsageError naming the flag for a key that is not METRIC,LABEL */
function allowedLabels(from: string, lists: Mapping): AllowedLabels {
  const allowed = new Map<string, Map<string, ReadonlySet<string>>>()
  for (const [key, values] of Object.entries(lists)) {
    const [, metric, label] = mappingKey.exec(key) ?? []
    if (metric === undefined || label === undefined) throw new UsageError([`--${from} must have keys with format \`metricName,labelName\`, got "${key}"`])
    const ofMetric = allowed.get(metric) ?? new Map()
    allowed.set(metric, ofMetric.set(label, new Set(values.split(','))))
  }
  return allowed
}
