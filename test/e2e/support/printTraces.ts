/** Prints as JSON what tests could have left on this host; the test runner compares it before and after a whole run. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { directoriesIn, hostTraces } from './localCluster.ts'

const shownFiles = 5

// The runner gives its tests a directory for temporary files of their own.
const temporary = directoriesIn(os.tmpdir()).filter((directory) => path.basename(directory).startsWith('skiff-'))
console.log(JSON.stringify({ ...hostTraces(), temporary: temporary.map(withFiles) }))

/** The directory and some files in it: they tell which test left it. */
function withFiles(directory: string): string {
  const files = fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })
  return `${directory} with ${files.slice(0, shownFiles).join(', ') || 'no files'}`
}
