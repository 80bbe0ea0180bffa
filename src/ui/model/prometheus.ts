/** Reads the samples of a few families from the text of /metrics (L4, pure), for the live view. */

import { ownValue } from '#base/bareMap'

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const label = /([a-zA-Z_]\w*)="((?:\\.|[^"\\])*)"/g

/** @param families the names that are wanted; those with suffixes, such as _bucket, are others */
export function samplesOf(text: string, families: ReadonlySet<string>): Sample[] {
  const samples: Sample[] = []
  for (const one of text.split('\n')) {
    const name = one.slice(0, Math.max(0, one.search(/[{ ]/)))
    if (!families.has(name)) continue
    const [, , labels = '', value = ''] = line.exec(one) ?? []
    const pairs = [...labels.matchAll(label)].map(([, key = '', held = '']) => [key, held.replace(/\\(.)/g, (_, next: string) => (next === 'n' ? '\n' : next))])
    samples.push({ name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) })
  }
  return samples
}

/** The sum of a family by one of its labels, the greatest first. */
export function sumBy(samples: readonly Sample[], name: string, by: string): (readonly [string, number])[] {
  const sums = new Map<string, number>()
  for (const sample of samples) {
    if (sample.name !== name) continue
    const key = ownValue(sample.labels, by) ?? ''
    sums.set(key, (sums.get(key) ?? 0) + sample.value)
  }
  return [...sums].sort(([, one], [, other]) => other - one)
}

export const sumOf = (samples: readonly Sample[], name: string): number => samples.reduce((sum, sample) => (sample.name === name ? sum + sample.value : sum), 0)
