// Makes the last part of an article's address from its title.
exports.slug = (title) => title.toLowerCase().replace(" ", "-");
