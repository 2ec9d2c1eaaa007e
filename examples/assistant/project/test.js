const { slug } = require("./slug.js");

const wanted = {
    "News": "news",
    "Good morning": "good-morning",
    "A day in the hills": "a-day-in-the-hills",
    "What's new? (Part 2)": "what-s-new-part-2",
};

let failed = 0;
for (const [title, right] of Object.entries(wanted)) {
    const made = slug(title);
    if (made !== right) {
        failed += 1;
        console.log(`${title}: ${made} instead of ${right}`);
    }
}
console.log(`${Object.keys(wanted).length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
