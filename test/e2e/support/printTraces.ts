/** Prints as JSON what tests could have left on this host; the test runner compares it before and after a whole run. */
import os from 'node:os'
import path from 'node:path'
import { directoriesIn, hostTraces } from './localCluster.ts'

// The runner gives its tests a directory for temporary files of their own.
const temporary = directoriesIn(os.tmpdir()).filter((directory) => path.basename(directory).startsWith('skiff-'))
console.log(JSON.stringify({ ...hostTraces(), temporary }))
