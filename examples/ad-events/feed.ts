// Feeds the ad-events app of a running server and checks what it counts.
//
//   node dist-test/examples/ad-events/feed.js [--url http://127.0.0.1:7070] [--rate 10000] [--seconds 5] [--seed 1]

import { parseArgs } from 'node:util';
import { driveAds } from './drive.ts';
import { adReportLines } from './report.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:7070' },
    rate: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
  },
});
const rate = { eventsPerSecond: Number(values.rate), seconds: Number(values.seconds) };
const report = await driveAds({ url: values.url, seed: Number(values.seed), rates: [rate] });
console.log(adReportLines(report).join('\n'));
if (report.differences.length > 0) process.exitCode = 1;
