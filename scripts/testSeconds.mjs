/** Remembers how long the processes of tests took, so that a run of this checkout starts the longest first: a long one that starts last would run alone. */
import fs from 'node:fs'
import path from 'node:path'

const fileIn = (root) => path.join(root, 'node_modules/.cache/test-seconds.json')

/** @returns seconds by label, of the last run of each; empty after the first install */
export function readSeconds(root) {
  try {
    return JSON.parse(fs.readFileSync(fileIn(root), 'utf8'))
  } catch {
    return {}
  }
}

export function writeSeconds(root, outcomes) {
  const seconds = Object.fromEntries(outcomes.map((outcome) => [outcome.label, Math.round(outcome.seconds)]))
  fs.mkdirSync(path.dirname(fileIn(root)), { recursive: true })
  fs.writeFileSync(fileIn(root), JSON.stringify({ ...readSeconds(root), ...seconds }))
}
