import js from "@eslint/js";
import globals from "globals";

export default [
  {
    ...js.configs.recommended,
    files: ["src/**/*.js", "tools/*.js"],
    languageOptions: {globals: globals.browser, sourceType: "module"},
  },
  {
    files: ["src/**/*.js", "tools/*.js"],
    linterOptions: {reportUnusedDisableDirectives: "error"},
    rules: {
      eqeqeq: "error",
      "max-len": ["error", {code: 120}],
      "no-restricted-syntax": [
        "error",
        {
          selector: "ExportNamedDeclaration > VariableDeclaration[declarations.length!=1]",
          message: "What joins scripts finds one name an export.",
        },
        {
          selector: "MemberExpression[object.type='ThisExpression'][property.type='TemplateLiteral']",
          message: "A search must find the name.",
        },
        {
          selector: "MemberExpression[object.type='ThisExpression'][property.type='BinaryExpression']",
          message: "A search must find the name.",
        },
      ],
      "no-shadow": "error",
      "no-var": "error",
      "prefer-const": ["error", {destructuring: "all"}],
    },
  },
];
